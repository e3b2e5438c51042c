// Thread statements: the tables of LangGraph threads, part of `Statements`.

const CHECKPOINT = "checkpoint as number, thread, namespace, id, parent, body, metadata, channels";
const VALUE = "value, type, form, cast(data as text) as data";
const WRITE = `insert into langgraph_writes (thread, namespace, id, task, position, channel, type, form, data)
  values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, cast(?9 as blob))
  on conflict (thread, namespace, id, task, position)`;

export const THREAD_SQL = {
  beginReading: "begin",
  threadCheckpoint: `select ${CHECKPOINT} from langgraph_checkpoints where thread = ? and namespace = ? and id = ?`,
  newestThreadCheckpoint: `select ${CHECKPOINT} from langgraph_checkpoints where thread = ? and namespace = ?
    order by id desc limit 1`,
  insertThreadCheckpoint: `insert into langgraph_checkpoints (thread, namespace, id, parent, body, metadata, channels)
    values (?, ?, ?, ?, ?, ?, ?)`,
  // Each reads one index from its end.
  checkpointsOfNamespace: `select ${CHECKPOINT} from langgraph_checkpoints
    where thread = ?1 and namespace = ?2 and id <= ?3 and (id < ?3 or checkpoint < ?4) order by id desc limit ?5`,
  checkpointsOfThread: `select ${CHECKPOINT} from langgraph_checkpoints indexed by langgraph_checkpoints_by_thread
    where thread = ?1 and id <= ?3 and (id < ?3 or checkpoint < ?4) order by id desc, checkpoint desc limit ?5`,
  checkpointsOfAll: `select ${CHECKPOINT} from langgraph_checkpoints indexed by langgraph_checkpoints_by_id
    where id <= ?3 and (id < ?3 or checkpoint < ?4) and (?2 is null or namespace = ?2)
    order by id desc, checkpoint desc limit ?5`,

  lastThreadValue: "select coalesce(max(value), 0) as value from langgraph_values",
  insertThreadValue: `insert into langgraph_values (value, thread, place, type, form, data)
    values (?1, ?2, ?3, ?4, ?5, cast(?6 as blob))`,
  threadValue: `select ${VALUE} from langgraph_values where value = ?`,
  threadValuesAt: `select ${VALUE} from langgraph_values where thread = ? and place = ?`,
  threadHasValue: "select 1 from langgraph_values where value = ? and thread = ?",

  addThreadWrite: `${WRITE} do nothing`,
  replaceThreadWrite: `${WRITE} do update
    set channel = excluded.channel, type = excluded.type, form = excluded.form, data = excluded.data`,
  threadWrites: `select task, position, channel, type, form, cast(data as text) as data from langgraph_writes
    where thread = ? and namespace = ? and id = ? order by task, position`,

  removeThreadCheckpoints: "delete from langgraph_checkpoints where thread = ?",
  removeThreadValues: "delete from langgraph_values where thread = ?",
  removeThreadWrites: "delete from langgraph_writes where thread = ?",
} as const;
