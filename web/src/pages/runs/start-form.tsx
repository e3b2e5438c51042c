// Start form: starts a run, with fields from the JSON Schema of the input, or with an editor of JSON.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { DefinitionBody } from "../../../../src/contract/definition.ts";
import type { RunSummary } from "../../../../src/contract/run.ts";
import { at, newKey, post, Problem } from "../../api.ts";
import { command } from "../../cli.ts";
import { Button, Command } from "../../components/controls.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { textOf } from "../../components/json.tsx";
import { go, href, runPath } from "../../router.ts";
import { exampleOf, fieldsOf, textOfValue, valueOf, type Field, type Schema } from "./schema-form.ts";

interface StartFormProps {
  readonly definitions: readonly DefinitionBody[];
  readonly chosen: string;
  /** Without id, tags and delay. */
  readonly short?: boolean;
  readonly children: (parts: StartParts) => JSX.Element;
}

interface StartParts {
  readonly fields: JSX.Element;
  readonly submit: () => Promise<void>;
  readonly name: string;
  readonly command: string;
  readonly canStart: boolean;
}

/** Newest version, what the process can start. */
export function startable(definitions: readonly DefinitionBody[]): readonly DefinitionBody[] {
  return definitions.filter(({ registered }) => registered);
}

export function versionOf(definition: DefinitionBody): number {
  return Math.max(1, ...definition.versions.map(({ version }) => version));
}

export function StartForm({ definitions, chosen, short = false, children }: StartFormProps): JSX.Element {
  const offered = startable(definitions);
  const [name, setName] = useState(chosen);
  const definition = offered.find((one) => one.name === name) ?? offered[0];
  const schema = definition?.input as Schema | undefined;
  const fields = fieldsOf(schema);
  const [asJson, setAsJson] = useState(false);
  const [text, setText] = useState("");
  const [values, setValues] = useState<Readonly<Record<string, string>>>({});
  const [id, setId] = useState("");
  const [tags, setTags] = useState("");
  const [delay, setDelay] = useState("");
  const issues = useSignal<readonly string[]>([]);
  const [key, setKey] = useState(newKey);

  useEffect(() => {
    const example = exampleOf(schema);
    setText(definition === undefined || schema === undefined ? "{}" : textOf(example));
    setValues(
      Object.fromEntries(
        (fields ?? []).map(({ name: field }) => [
          field,
          textOfValue((example as Record<string, unknown> | null)?.[field]),
        ]),
      ),
    );
    issues.value = [];
  }, [definition?.name]);

  const isForm = fields !== undefined && !asJson;
  const readInput = (): unknown => {
    if (!isForm) return text.trim() === "" ? undefined : (JSON.parse(text) as unknown);
    const input: Record<string, unknown> = {};
    for (const field of fields) {
      const value = valueOf(field, values[field.name] ?? "");
      if (value !== undefined) input[field.name] = value;
    }
    return input;
  };
  const tagList = tags
    .split(",")
    .map((tag) => tag.trim())
    .filter((tag) => tag !== "");

  const submit = async (): Promise<void> => {
    if (definition === undefined) return;
    let input: unknown;
    try {
      input = readInput();
    } catch (thrown) {
      issues.value = [`The input is no JSON: ${thrown instanceof Error ? thrown.message : String(thrown)}`];
      return;
    }
    try {
      const run = await post<RunSummary>(
        at`/v1/definitions/${definition.name}/runs`,
        {
          input,
          ...(id !== "" && { id }),
          ...(tagList.length > 0 && { tags: tagList }),
          ...(delay !== "" && { delay }),
        },
        { key },
      );
      go(href(runPath(run.id)));
    } catch (thrown) {
      // A corrected request is another request.
      setKey(newKey());
      if (!(thrown instanceof Problem) || thrown.isOutage) throw thrown;
      // The text of the problem holds the first issue; several are listed instead.
      const listed = thrown.issues.map(({ path, message }) => `${path.replace(/^\$\.?/, "") || "input"}: ${message}`);
      issues.value = listed.length > 1 ? listed : [thrown.detail];
    }
  };

  let typed: unknown;
  try {
    typed = readInput();
  } catch {
    typed = undefined;
  }
  const shown = command(
    "run",
    "app.ts",
    definition?.name ?? "name",
    typed === undefined ? undefined : JSON.stringify(typed),
    ...(id === "" ? [] : ["--id", id]),
    ...(tagList.length === 0 ? [] : ["--tag", tagList.join(",")]),
    ...(delay === "" ? [] : ["--delay", delay]),
    "--detach",
  );

  const body = (
    <>
      <label class="field">
        <span class="eyebrow">Definition</span>
        <select value={definition?.name} onChange={(event) => setName(event.currentTarget.value)}>
          {offered.map((one) => (
            <option key={one.name} value={one.name}>
              {one.name} · {one.kind} v{versionOf(one)}
            </option>
          ))}
        </select>
      </label>
      {isForm ? (
        <fieldset class="fields">
          <legend class="eyebrow">Input, from its schema</legend>
          {fields.map((field) => (
            <FieldInput
              key={field.name}
              field={field}
              value={values[field.name] ?? ""}
              onChange={(value) => setValues({ ...values, [field.name]: value })}
            />
          ))}
        </fieldset>
      ) : (
        <label class="field">
          <span class="eyebrow">Input, as JSON</span>
          <textarea
            rows={short ? 3 : 6}
            spellcheck={false}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
      )}
      {fields !== undefined && (
        <label class="row">
          <input
            type="checkbox"
            checked={asJson}
            onChange={(event) => {
              if (event.currentTarget.checked) setText(textOf(typed));
              setAsJson(event.currentTarget.checked);
            }}
          />
          Edit the input as JSON
        </label>
      )}
      {!short && (
        <div class="three">
          <label class="field">
            <span class="eyebrow">Id; empty: a random one</span>
            <input value={id} onInput={(event) => setId(event.currentTarget.value)} />
          </label>
          <label class="field">
            <span class="eyebrow">Tags, separated by commas</span>
            <input value={tags} onInput={(event) => setTags(event.currentTarget.value)} />
          </label>
          <label class="field">
            <span class="eyebrow">Start after, such as 10 minutes</span>
            <input value={delay} onInput={(event) => setDelay(event.currentTarget.value)} />
          </label>
        </div>
      )}
      {issues.value.length > 0 && (
        <div class="issues" role="alert">
          {issues.value.map((issue) => (
            <p key={issue}>{issue}</p>
          ))}
        </div>
      )}
    </>
  );
  return children({
    fields: body,
    submit,
    name: definition?.name ?? "",
    command: shown,
    canStart: definition !== undefined,
  });
}

function FieldInput(props: {
  readonly field: Field;
  readonly value: string;
  readonly onChange: (value: string) => void;
}): JSX.Element {
  const { field, value, onChange } = props;
  const label = (
    <span class="eyebrow">
      {field.name}
      {!field.required && " (optional)"}
      {field.description !== undefined && ` · ${field.description}`}
    </span>
  );
  const onInput = (event: { readonly currentTarget: { readonly value: string } }): void =>
    onChange(event.currentTarget.value);
  if (field.kind === "choice" || field.kind === "boolean") {
    const choices = field.kind === "boolean" ? ["false", "true"] : (field.choices ?? []).map(String);
    return (
      <label class="field">
        {label}
        <select value={value} onChange={onInput}>
          {!field.required && <option value="">—</option>}
          {choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      </label>
    );
  }
  return (
    <label class="field">
      {label}
      {field.kind === "number" ? (
        <input type="number" step="any" required={field.required} value={value} onInput={onInput} />
      ) : (
        <input type="text" required={field.required && field.kind === "json"} value={value} onInput={onInput} />
      )}
    </label>
  );
}

export function StartDialog(props: {
  readonly definitions: readonly DefinitionBody[];
  readonly chosen: string;
  readonly onClose: () => void;
}): JSX.Element {
  if (startable(props.definitions).length === 0) {
    return (
      <Dialog title="Start a run" onClose={props.onClose}>
        <p>
          The process of this server has no definitions. Start it with the file that exports them, or start the run from
          your shell.
        </p>
        <Command text="reprise dev app.ts" />
      </Dialog>
    );
  }
  return (
    <StartForm definitions={props.definitions} chosen={props.chosen}>
      {({ fields, submit, name, command: shown, canStart }) => (
        <Dialog
          title="Start a run"
          wide
          onClose={props.onClose}
          footer={
            <>
              <span class="grow cut">
                <Command text={shown} />
              </span>
              <Button kind="primary" icon="play" acts disabled={!canStart} onClick={submit}>
                Start {name}
              </Button>
            </>
          }
        >
          {fields}
        </Dialog>
      )}
    </StartForm>
  );
}
