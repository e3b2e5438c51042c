// Federation: sites that work alone and share their history: logs of signed records, and contents named by their keys.
//
// `log` is pure: records, their order, cells, trees, notes and the files of a log. `carriers` are the places that files are exchanged
// through. `home` is the directory with everything that a site knows of itself and of others. `sync` moves records between store, home
// and carriers. `serve` answers other sites. `work` runs tasks for them.

export {
  CARRIER_LIMITS,
  checkPath,
  checkPrefix,
  type Carrier,
  type CarrierFile,
  type CarrierLimits,
  type CarrierOptions,
  type CarrierPorts,
  type Etag,
  type GetOptions,
  type ListOptions,
  type PutOptions,
} from "./carriers/carrier.ts";
export { openCarrier } from "./carriers/open-carrier.ts";
