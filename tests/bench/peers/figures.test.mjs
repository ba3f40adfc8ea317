import assert from "node:assert/strict";
import { test } from "node:test";

import { Book, now } from "./book.mjs";
import { percentile, perSecond } from "./figures.mjs";

test("a percentile is a value that was measured", () => {
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
  assert.equal(percentile(hundred, 0.5), 50);
  assert.equal(percentile(hundred, 0.99), 99);
  assert.equal(percentile(hundred, 1), 100);
  assert.equal(percentile([10, 9, -1], 0), -1);
  assert.equal(percentile([], 0.5), undefined);
});

test("a rate needs time", () => {
  assert.equal(perSecond(500, 250), 2000);
  assert.equal(perSecond(500, 0), undefined);
});

test("a book counts what came twice, early, and at once", async () => {
  const book = new Book(2, (n) => (n === 0 ? now() : now() + 1000));
  book.begin(0);
  book.begin(0);
  book.end();
  book.begin(1);
  await book.wait(now() + 10_000);
  assert.deepEqual(book.check(), { wanted: 2, arrived: 2, repeated: 1, early: 1, most_in_hand: 2 });
});

test("a book waits no longer than it is told", async () => {
  const book = new Book(1);
  await book.wait(now() + 1);
  assert.equal(book.check().arrived, 0);
});
