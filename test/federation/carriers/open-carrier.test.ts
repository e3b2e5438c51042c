import { expect, test } from "vitest";
import { openCarrier } from "../../../src/federation/index.ts";
import { PORTS } from "./real-ports.ts";

test.each(["ftp://host/x", "history", "", "s4://bucket", "https://", "nats://host:4222", "s3://", "mailto:me@host"])(
  "%j is refused with examples of what would do",
  async (url) => {
    await expect(openCarrier(url, PORTS)).rejects.toMatchObject({
      code: "BAD_CARRIER_URL",
      message: expect.stringMatching(/s3:\/\/bucket/),
    });
  },
);

test("the message about a bad URL has no password", async () => {
  await expect(openCarrier("ftp://me:secret@host/x", PORTS)).rejects.toMatchObject({
    message: expect.not.stringContaining("secret"),
  });
});
