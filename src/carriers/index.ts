// Carriers: places with files, by URL: a folder, a web server, a bucket, a NATS server. Sites exchange their logs through them, and a
// store may keep its large payloads in one. Knows neither sites nor stores.

export {
  checkPath,
  checkPrefix,
  type Carrier,
  type CarrierFile,
  type CarrierOptions,
  type CarrierPorts,
  type Etag,
  type GetOptions,
  type ListOptions,
  type PutOptions,
} from "./carrier.ts";
export { carrierScheme, openCarrier } from "./open-carrier.ts";
