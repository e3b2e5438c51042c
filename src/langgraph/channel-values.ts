// Channel values: decides which of a checkpoint's values its parent already has, and which a put must write (saver.L2).

import type { Checkpoint, ChannelVersions, SerializerProtocol } from "@langchain/langgraph-checkpoint";
import type { ChannelVersion, NewChannel, Serialized, StoredChannel } from "../stores/index.ts";

export async function serialize(serde: SerializerProtocol, value: unknown): Promise<Serialized> {
  const [type, bytes] = await serde.dumpsTyped(value);
  return { type, bytes };
}

/**
 * `inherited`: the channels of the parent; undefined if the store does not have the named parent, so that every value must
 * be written.
 */
export async function channelsToPut(
  serde: SerializerProtocol,
  { channel_values: values, channel_versions: versions }: Checkpoint,
  newVersions: ChannelVersions,
  inherited: readonly StoredChannel[] | undefined,
  hasParent: boolean,
): Promise<readonly (StoredChannel | NewChannel)[]> {
  const known = new Map(inherited?.map((channel) => [channel.channel, channel]));
  return Promise.all(
    Object.entries(values).map(async ([channel, value]) => {
      const version: ChannelVersion = Object.hasOwn(versions, channel) ? versions[channel] : undefined;
      const isNew = version === undefined || Object.hasOwn(newVersions, channel);
      const parents = known.get(channel);
      if (!isNew && parents !== undefined && parents.version === version) return parents;
      return { channel, version, payload: await serialize(serde, value), isOld: !isNew && !hasParent };
    }),
  );
}
