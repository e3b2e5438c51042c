// TLS options of a URL: the connection works, or it is refused at once with a reason.

import { chownSync, chmodSync, copyFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock, systemRandom, systemTimers } from "../../src/base/index.ts";
import { storeOf } from "../../src/stores/store-url.ts";
import { runQuery } from "../servers/run-query.ts";
import { makeCertificates, type Certificates } from "../servers/certificates.ts";
import { describeOn, fastFolder, startServer, type ServerKind, type TestServer } from "../servers/index.ts";

const MACHINE = { clock: systemClock, timers: systemTimers, random: systemRandom, durability: "full" } as const;

/** A server whose certificate is for `localhost`, not for its IP address. */
async function startWithTls(kind: ServerKind, { cert, key }: Certificates): Promise<TestServer> {
  const server = await startServer(kind, { under: fastFolder() });
  const [ownCert, ownKey] = [join(server.folder, "server.pem"), join(server.folder, "server.key")];
  const { uid, gid } = statSync(server.folder);
  for (const [from, to] of [
    [cert, ownCert],
    [key, ownKey],
  ] as const) {
    copyFileSync(from, to);
    chownSync(to, uid, gid);
    chmodSync(to, 0o600);
  }
  await server.stop();
  await server.start(
    kind === "postgres"
      ? { ssl: "on", ssl_cert_file: ownCert, ssl_key_file: ownKey }
      : { "ssl-cert": ownCert, "ssl-key": ownKey },
  );
  return server;
}

async function open(url: string): Promise<void> {
  const store = await storeOf(url)["~open"](MACHINE);
  await store.close();
}

/** A retried error would be STORE_UNREACHABLE in the end. */
async function refusal(url: string): Promise<{ code: string; message: string }> {
  const error = await open(url).then(
    () => undefined,
    (cause: unknown) => cause as { code: string; message: string },
  );
  if (error === undefined) throw new Error(`${url} was taken`);
  return error;
}

const MODES = {
  postgres: { encrypt: "sslmode=require", verify: "sslmode=verify-full" },
  mysql: { encrypt: "tls=encrypt", verify: "tls=verify" },
} as const;

for (const kind of ["postgres", "mysql"] as const) {
  const { encrypt, verify } = MODES[kind];

  describeOn(kind, `TLS with ${kind}`, () => {
    let certificates: Certificates;
    let withTls: TestServer;
    let withoutTls: TestServer;
    beforeAll(async () => {
      certificates = makeCertificates("DNS:localhost");
      const started = await Promise.all([
        startWithTls(kind, certificates),
        startServer(kind, { under: fastFolder(), settings: kind === "mysql" ? { "skip-ssl": 1 } : {} }),
      ]);
      [withTls, withoutTls] = started;
      await Promise.all(started.map((server) => server.run("create database shop")));
    }, 120_000);
    afterAll(async () => {
      certificates[Symbol.dispose]();
      await Promise.all([withTls, withoutTls].map((server) => server[Symbol.asyncDispose]()));
    });

    const named = (server: TestServer): string => server.urlOf("shop").replace("127.0.0.1", "localhost");

    test("a server with a certificate for its host name, by a known CA, is accepted", async () => {
      await open(`${named(withTls)}?${verify}&sslrootcert=${certificates.ca}`);
      await open(`${withTls.urlOf("shop")}?${encrypt}`);
    });

    test("a server without TLS is refused at once if the URL requires TLS", async () => {
      const { code, message } = await refusal(`${withoutTls.urlOf("shop")}?${encrypt}`);
      expect(code).toBe("STORE_IO");
      expect(message).toContain("does not offer TLS");
      expect(message).toContain(encrypt);
    });

    test("a certificate by an unknown CA is refused at once", async () => {
      const { code, message } = await refusal(`${named(withTls)}?${verify}`);
      expect(code).toBe("STORE_IO");
      expect(message).toContain("certificate is not trusted");
      expect(message).toContain("sslrootcert=");
    });

    test("a root certificate that cannot be read is refused at once", async () => {
      const { code, message } = await refusal(`${named(withTls)}?${verify}&sslrootcert=/no/such/ca.pem`);
      expect(code).toBe("BAD_STORE_URL");
      expect(message).toContain("sslrootcert=/no/such/ca.pem (ENOENT)");
    });
  });
}

describeOn("postgres", "TLS with postgres, in libpq's modes", () => {
  test("verify-full checks the host name, verify-ca and require do not, prefer accepts both", async () => {
    using certificates = makeCertificates("DNS:elsewhere.example");
    await using server = await startWithTls("postgres", certificates);
    const ca = `sslrootcert=${certificates.ca}`;
    const url = server.url;
    for (const host of ["localhost", "127.0.0.1"]) {
      const at = url.replace("127.0.0.1", host);
      const { code, message } = await refusal(`${at}?sslmode=verify-full&${ca}`);
      expect(code).toBe("STORE_IO");
      expect(message).toContain("certificate is for another host name");
    }
    await open(`${url}?sslmode=verify-ca&${ca}`);
    await open(`${url}?sslmode=require`);
    using others = makeCertificates("DNS:localhost");
    expect(await refusal(`${url}?sslmode=require&sslrootcert=${others.ca}`)).toMatchObject({ code: "STORE_IO" });
    const count = "select count(*)::int from pg_stat_ssl s join pg_stat_activity a using (pid) where s.ssl";
    const store = await storeOf(`${url}?sslmode=prefer`)["~open"](MACHINE);
    expect((await runQuery(url, `${count} and application_name like 'reprise %'`))[0]).toBeGreaterThan(0);
    await store.close();
    await server.stop();
    await server.start({});
    await open(`${url}?sslmode=prefer`);
    await open(`${url}?sslmode=disable`);
  });
});

describeOn("mysql", "TLS with MariaDB", () => {
  test("verify checks the host name", async () => {
    using certificates = makeCertificates("DNS:elsewhere.example");
    await using server = await startWithTls("mysql", certificates);
    const at = server.url.replace("127.0.0.1", "localhost");
    const { code, message } = await refusal(`${at}?tls=verify&sslrootcert=${certificates.ca}`);
    expect(code).toBe("STORE_IO");
    expect(message).toContain("certificate is for another host name");
  });
});
