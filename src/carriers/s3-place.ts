// S3 place: bucket, prefix, server, region and keys, as a URL and the environment name them.

import { RepriseError } from "../base/index.ts";

export interface S3Place {
  /** Without keys, for messages. */
  readonly name: string;
  /** The URL of the bucket, without "/" at its end. */
  readonly base: string;
  /** "" or with "/" at its end. */
  readonly prefix: string;
  readonly region: string;
  readonly keys: { readonly accessKeyId: string; readonly secretAccessKey: string; readonly sessionToken?: string };
  /** Of derived signing keys, which are the same for a day. */
  readonly cache: Map<string, ArrayBuffer>;
}

type Environment = Readonly<Record<string, string | undefined>>;

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const EXAMPLE =
  'Write "s3://bucket/prefix?region=eu-central-1", for another server also "&endpoint=https://host:9000".';

export function placeOf(url: string, env: Environment): S3Place {
  const { hostname: bucket, pathname, searchParams, username, hash, port } = new URL(url);
  const shown = `s3://${bucket}${pathname}`.replace(/\/+$/, "");
  const bad = (problem: string): RepriseError =>
    new RepriseError("BAD_CARRIER_URL", `${JSON.stringify(shown)}: ${problem}. ${EXAMPLE}`, {
      details: { url: shown },
    });
  if (!BUCKET.test(bucket) || port !== "")
    throw bad("a bucket has 3 to 63 lower-case letters, digits, dots and hyphens");
  if (username !== "") throw bad("the keys of S3 come from the environment, not from the URL");
  const unknown = [...searchParams.keys()].find((name) => name !== "endpoint" && name !== "region");
  if (unknown !== undefined || hash !== "") throw bad(`there is no parameter ${JSON.stringify(unknown ?? hash)}`);
  const region = searchParams.get("region") ?? env["AWS_REGION"] ?? env["AWS_DEFAULT_REGION"] ?? "us-east-1";
  const endpoint = searchParams.get("endpoint") ?? env["AWS_ENDPOINT_URL_S3"] ?? env["AWS_ENDPOINT_URL"];
  if (endpoint !== undefined && !/^https?:$/.test(URL.canParse(endpoint) ? new URL(endpoint).protocol : ""))
    throw bad(`the endpoint ${JSON.stringify(endpoint)} is no URL with https:// or http://`);
  const folder = decodeURIComponent(pathname).replace(/^\/+|\/+$/g, "");
  return {
    name: shown,
    base: baseOf(bucket, region, endpoint),
    prefix: folder === "" ? "" : `${folder}/`,
    region,
    keys: keysIn(env, shown),
    cache: new Map(),
  };
}

/** A certificate of *.s3.amazonaws.com does not cover a bucket with dots; other servers may not resolve names of buckets. */
function baseOf(bucket: string, region: string, endpoint: string | undefined): string {
  if (endpoint !== undefined) return `${endpoint.replace(/\/+$/, "")}/${bucket}`;
  const host = `s3.${region}.amazonaws.com`;
  return bucket.includes(".") ? `https://${host}/${bucket}` : `https://${bucket}.${host}`;
}

function keysIn(env: Environment, shown: string): S3Place["keys"] {
  const {
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_SESSION_TOKEN: sessionToken,
  } = env;
  if (accessKeyId !== undefined && secretAccessKey !== undefined)
    return { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
  throw new RepriseError(
    "BAD_OPTIONS",
    `${shown} needs keys, and AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not set. With the tool of AWS: \`eval "$(aws configure export-credentials --format env)"\`.`,
    { details: { url: shown } },
  );
}
