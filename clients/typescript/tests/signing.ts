/** Signs calls as Tidegate does. */

import { createHmac } from "node:crypto";

export const SECRET = "whsec_f1G4tjPCN9nHZejqz/eS5isRna3QzX+Ciy/YkLIZjXg=";
export const OLD_SECRET = `whsec_${Buffer.from("an older key").toString("base64")}`;

export function signed(body: Uint8Array, secret: string, sentAt: number): Record<string, string> {
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const signature = createHmac("sha256", key).update(`id.${sentAt}.`).update(body).digest("base64");
  return { "webhook-id": "id", "webhook-timestamp": String(sentAt), "webhook-signature": `v1,${signature}` };
}
