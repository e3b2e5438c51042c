// Sessions: how a browser signs in, once, and is known afterwards.
//
// sessions.S1. A one-time code has 256 random bits, is valid for ten minutes, and signs in once. It stands behind `#` in an address, which
//   no browser sends: so it is in no log, no proxy and no referrer. Only its hash is kept, in memory.
// sessions.S2. A session is a signed value in a cookie that scripts cannot read (`HttpOnly`) and other sites cannot send
//   (`SameSite=Strict`). It ends after twelve hours, with its token, and when the person signs out.
// sessions.S3. The name of the cookie has a part that depends on the server's secret: cookies know no ports, and two servers of one machine
//   must not overwrite each other's.

import type { Clock, Random } from "../../base/index.ts";
import { ROLES, type Role } from "../../contract/index.ts";
import { tokenDigest } from "../../http/index.ts";
import type { ServerSecret } from "./server-secret.ts";

/** Whose session it is: of a token, by its name and digest, or of a person at this machine. */
export interface SessionOwner {
  readonly name: string;
  /** Of a person at this machine. */
  readonly role?: Role;
  /** Of a token. */
  readonly digest?: string;
}

export interface Session extends SessionOwner {
  readonly id: string;
  readonly expiresAt: number;
}

const SESSION_MS = 12 * 60 * 60_000;
const CODE_MS = 10 * 60_000;
const MAX_CODES = 1_000;
const CODE_BYTES = 32;

export interface SessionOptions {
  readonly secret: ServerSecret;
  readonly clock: Clock;
  readonly random: Random;
  /** The path of the cookie. */
  readonly path: string;
}

export class Sessions {
  readonly #options: SessionOptions;
  /** By the hash of the code. */
  readonly #codes = new Map<string, { readonly owner: SessionOwner; readonly expiresAt: number }>();
  /** Sessions that were ended before their time, until that time. */
  readonly #ended = new Map<string, number>();

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** sessions.S1 */
  createCode(owner: SessionOwner): string {
    const { clock, random } = this.#options;
    const code = Buffer.from(random.bytes(CODE_BYTES)).toString("base64url");
    dropExpired(this.#codes, clock.now(), ({ expiresAt }) => expiresAt);
    const [oldest] = this.#codes.keys();
    if (this.#codes.size >= MAX_CODES && oldest !== undefined) this.#codes.delete(oldest);
    this.#codes.set(tokenDigest(code), { owner, expiresAt: clock.now() + CODE_MS });
    return code;
  }

  /** The owner of the code, the first time. */
  useCode(code: string): SessionOwner | undefined {
    const digest = tokenDigest(code);
    const found = this.#codes.get(digest);
    this.#codes.delete(digest);
    return found !== undefined && found.expiresAt > this.#options.clock.now() ? found.owner : undefined;
  }

  /** sessions.S2. The header that signs a browser in. `until`: when its token expires. */
  cookieFor(owner: SessionOwner, until: number, isSecure: boolean): string {
    const { clock, random, secret } = this.#options;
    const now = clock.now();
    const expiresAt = Math.min(now + SESSION_MS, until);
    const session: Session = { ...owner, id: random.token(), expiresAt };
    const seconds = Math.floor((expiresAt - now) / 1_000);
    return this.#cookie(secret.sign("session", session), seconds, isSecure);
  }

  endedCookie(isSecure: boolean): string {
    return this.#cookie("", 0, isSecure);
  }

  #cookie(value: string, seconds: number, isSecure: boolean): string {
    const { path } = this.#options;
    const security = isSecure ? "; Secure" : "";
    return `${this.#nameFor(isSecure)}=${value}; Path=${path}; Max-Age=${seconds}; HttpOnly; SameSite=Strict${security}`;
  }

  /** sessions.S3. With `__Host-`, a browser refuses the cookie from other hosts of the domain. */
  #nameFor(isSecure: boolean): string {
    const name = `reprise-${this.#options.secret.fingerprint()}`;
    return isSecure && this.#options.path === "/" ? `__Host-${name}` : name;
  }

  hasCookie(request: Request, isSecure: boolean): boolean {
    return cookieOf(request, this.#nameFor(isSecure)) !== undefined;
  }

  /** The session of the request's cookie; undefined: it has none that is valid. */
  find(request: Request, isSecure: boolean): Session | undefined {
    const value = cookieOf(request, this.#nameFor(isSecure));
    const session =
      value === undefined ? undefined : (this.#options.secret.verify("session", value) as Session | undefined);
    return session !== undefined && this.isValid(session) ? session : undefined;
  }

  isValid({ id, expiresAt, role }: Session): boolean {
    if (role !== undefined && !ROLES.includes(role)) return false;
    return expiresAt > this.#options.clock.now() && !this.#ended.has(id);
  }

  end({ id, expiresAt }: Session): void {
    dropExpired(this.#ended, this.#options.clock.now(), (until) => until);
    this.#ended.set(id, expiresAt);
  }
}

function dropExpired<T>(map: Map<string, T>, now: number, untilOf: (value: T) => number): void {
  for (const [key, value] of map) if (untilOf(value) <= now) map.delete(key);
}

/** Undefined also if the request has two cookies of the name: one of them comes from elsewhere. */
function cookieOf(request: Request, name: string): string | undefined {
  const found = (request.headers.get("cookie") ?? "")
    .split(/; ?/)
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
  return found.length === 1 && found[0] !== "" ? found[0] : undefined;
}
