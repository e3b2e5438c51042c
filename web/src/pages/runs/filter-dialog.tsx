// The filter of the list as a form; its values go into the address.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../../components/controls.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { setQuery } from "../../router.ts";
import { AGES, type Filter } from "./filter.ts";

export function FilterDialog(props: {
  readonly filter: Filter;
  readonly definitions: readonly string[];
  readonly onClose: () => void;
}): JSX.Element {
  const { filter, onClose } = props;
  const [values, setValues] = useState({
    definition: filter.definition,
    tag: filter.tags.join(", "),
    started: filter.age?.name ?? "",
    q: filter.q,
    errorCode: filter.errorCode,
    kind: filter.kind,
  });
  const set =
    (name: keyof typeof values) =>
    (event: { readonly currentTarget: { readonly value: string } }): void =>
      setValues({ ...values, [name]: event.currentTarget.value });
  const apply = (): void => {
    const tags = values.tag.split(",").map((tag) => tag.trim());
    setQuery({ ...values, tag: tags.filter((tag) => tag !== ""), after: "" }, { push: true });
    onClose();
  };
  return (
    <Dialog
      title="Filter"
      onClose={onClose}
      onSubmit={apply}
      footer={
        <>
          <Button
            onClick={() => {
              setQuery(
                { definition: "", tag: "", started: "", q: "", errorCode: "", kind: "", parent: "", after: "" },
                { push: true },
              );
              onClose();
            }}
          >
            Clear all
          </Button>
          <Button kind="primary" type="submit">
            Show
          </Button>
        </>
      }
    >
      <div class="two">
        <label class="field">
          <span class="eyebrow">Definition</span>
          <input list="filter-definitions" value={values.definition} onInput={set("definition")} autoFocus />
          <datalist id="filter-definitions">
            {props.definitions.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </label>
        <label class="field">
          <span class="eyebrow">Tags, separated by commas: all of them</span>
          <input value={values.tag} onInput={set("tag")} />
        </label>
        <label class="field">
          <span class="eyebrow">Started</span>
          <select value={values.started} onChange={set("started")}>
            <option value="">at any time</option>
            {AGES.map(({ name, label }) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          <span class="eyebrow">Id contains</span>
          <input value={values.q} onInput={set("q")} />
        </label>
        <label class="field">
          <span class="eyebrow">Code of the error</span>
          <input value={values.errorCode} onInput={set("errorCode")} />
        </label>
        <label class="field">
          <span class="eyebrow">Kind</span>
          <select value={values.kind} onChange={set("kind")}>
            <option value="">any</option>
            <option value="workflow">workflow</option>
            <option value="graph">graph</option>
            <option value="flow">flow</option>
          </select>
        </label>
      </div>
    </Dialog>
  );
}
