// What the processes of a server take: read from /proc, so there are no figures on other systems.
import { readFileSync, readdirSync } from "node:fs";

// Clock ticks a second, and the page of statm: the same on every Linux that Node runs on by default.
const TICKS = 100;

/** Memory in MB and processor time in ms of a process and its descendants; nothing where that cannot be read. */
export function usage(root) {
  try {
    const processes = family(root);
    const memoryKb = processes.reduce((sum, { pid }) => sum + proportionalKb(pid), 0);
    const ticks = processes.reduce((sum, process) => sum + process.ticks, 0);
    return { memoryMb: memoryKb / 1000, processorMs: (ticks * 1000) / TICKS };
  } catch {
    return undefined;
  }
}

function family(root) {
  const all = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map(stat).filter(Boolean);
  const found = all.filter(({ pid }) => pid === root);
  // The list grows while it is walked: children of children.
  for (const { pid } of found) found.push(...all.filter(({ parent }) => parent === pid));
  return found;
}

/** A process, with the time of its children that have ended; nothing when it has just ended. */
function stat(name) {
  try {
    const text = readFileSync(`/proc/${name}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ").map(Number);
    const [user, system, childrensUser, childrensSystem] = fields.slice(11, 15);
    return { pid: Number(name), parent: fields[1], ticks: user + system + childrensUser + childrensSystem };
  } catch {
    return undefined;
  }
}

/** Resident memory, in which a page that several processes share is counted once over all of them. */
function proportionalKb(pid) {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  return Number(/^Pss:\s+(\d+) kB/m.exec(text)[1]);
}
