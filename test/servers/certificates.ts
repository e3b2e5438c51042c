// Certificates for tests: a CA, and a server's certificate signed by it.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Certificates extends Disposable {
  /** The CA's certificate. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  /** Copies the files into a folder, owned by the server's account. */
  readonly folder: string;
}

/** Creates a certificate for one name, such as `DNS:localhost` or `IP:127.0.0.1`. */
export function makeCertificates(name: string): Certificates {
  const folder = mkdtempSync(join(tmpdir(), "reprise-certificates-"));
  const path = (file: string): string => join(folder, file);
  const openssl = (...args: readonly string[]): void => {
    execFileSync("openssl", args, { cwd: folder, stdio: "pipe" });
  };
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"] as const;
  openssl("req", "-x509", ...key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Reprise test CA", "-days", "2");
  openssl("req", ...key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=server");
  writeFileSync(path("names.txt"), `subjectAltName=${name}\n`);
  openssl(
    ...["x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"],
    ...["-extfile", "names.txt", "-days", "1", "-out", "server.pem"],
  );
  return {
    ca: path("ca.pem"),
    cert: path("server.pem"),
    key: path("server.key"),
    folder,
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}
