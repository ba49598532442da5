/** Owns: the fields of a form made from a JSON Schema. Each keeps its value's type; what was typed and cannot be read stays as typed, and is reported. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { canonicalText, inline, isObject, pathText, prettyValue, removeAt, setAt, type Path } from "../lib/json.js";
import { describe, emptyOf, readJson, readNumber, shapeOf, type Read, type Schema } from "../lib/schema-form.js";

interface FormProps { readonly schema: Schema; readonly value: unknown; readonly onChange: (value: unknown) => void; /** Places whose text cannot be read, each with why. */ readonly onUnreadable: (faults: readonly string[]) => void }
interface Form { readonly root: Schema; set(path: Path, value: unknown): void; remove(path: Path): void; note(path: Path, message: string | undefined): void }
interface FieldProps { readonly form: Form; readonly schema: Schema; readonly value: unknown; readonly path: Path; readonly name: string; readonly required: boolean; readonly removable: boolean }

export function SchemaForm({ schema, value, onChange, onUnreadable }: FormProps): JSX.Element {
  const faults = useRef(new Map<string, string>());
  const form: Form = {
    root: schema,
    set: (path, next) => { onChange(setAt(value, path, next)); },
    remove: (path) => { onChange(removeAt(value, path)); },
    note: (path, message) => {
      const key = pathText(path);
      if (message === undefined ? !faults.current.delete(key) : faults.current.get(key) === message) return;
      if (message !== undefined) faults.current.set(key, message);
      onUnreadable([...faults.current].map(([where, why]) => `${where}: ${why}`));
    },
  };
  return <div class="form"><Field form={form} schema={schema} value={value} path={[]} name="" required removable={false} /></div>;
}

function Field(props: FieldProps): JSX.Element {
  const { form, schema, value } = props;
  const shape = shapeOf(schema, value, form.root);
  switch (shape.kind) {
    case "object": return <ObjectField {...props} properties={shape.properties} />;
    case "array": return <ArrayField {...props} items={shape.items} />;
    case "choice": return <Labelled {...props}>{(id) => <Choice id={id} value={value} options={shape.options} onChange={(next) => { form.set(props.path, next); }} />}</Labelled>;
    case "boolean": return <Labelled {...props}>{(id) => <Choice id={id} value={value} options={[true, false]} onChange={(next) => { form.set(props.path, next); }} />}</Labelled>;
    case "text": return <Labelled {...props}>{(id) => shape.long
      ? <textarea id={id} rows={4} value={String(value)} onInput={(event) => { form.set(props.path, event.currentTarget.value); }} />
      : <input id={id} type="text" autoComplete="off" spellcheck={false} value={String(value)} onInput={(event) => { form.set(props.path, event.currentTarget.value); }} />}</Labelled>;
    case "number": return <Labelled {...props}>{(id) => <Typed id={id} {...props} shown={String(value)} read={(text) => readNumber(text, shape.integer)} />}</Labelled>;
    case "json": return <Labelled {...props}>{(id) => <Typed id={id} {...props} shown={prettyValue(value)} read={readJson} long />}</Labelled>;
  }
}

function ObjectField({ form, value, path, name, removable, properties }: FieldProps & { properties: Extract<ReturnType<typeof shapeOf>, { kind: "object" }>["properties"] }): JSX.Element {
  const values = isObject(value) ? value : {};
  const absent = properties.filter((property) => !property.present);
  const body = <>
    {properties.filter((property) => property.present).map((property) => <Field key={property.name} form={form} schema={property.schema} value={values[property.name]} path={[...path, property.name]} name={property.name} required={property.required} removable={!property.required} />)}
    {absent.length === 0 ? null : <p class="form-add">{absent.map((property) => <button key={property.name} type="button" onClick={() => { form.set([...path, property.name], emptyOf(property.schema, form.root)); }}>+ {property.name}</button>)}</p>}
  </>;
  return name === "" ? body : <fieldset><legend>{name}{removable ? <Remove form={form} path={path} name={name} /> : null}</legend>{body}</fieldset>;
}

function ArrayField({ form, value, path, name, removable, items }: FieldProps & { items: Schema }): JSX.Element {
  const list: readonly unknown[] = Array.isArray(value) ? value : [];
  return <fieldset><legend>{name} <span class="quiet">list of {list.length}</span>{removable ? <Remove form={form} path={path} name={name} /> : null}</legend>
    {list.map((item, index) => <Field key={index} form={form} schema={items} value={item} path={[...path, index]} name={`[${String(index)}]`} required={false} removable />)}
    <p class="form-add"><button type="button" onClick={() => { form.set(path, [...list, emptyOf(items, form.root)]); }}>+ item</button></p>
  </fieldset>;
}

function Labelled({ form, schema, value, path, name, required, removable, children }: FieldProps & { children: (id: string) => JSX.Element }): JSX.Element {
  const id = `f-${pathText(path)}`;
  const { about, limits } = describe(schema, value, form.root);
  return <div class="field"><label for={id}><b>{name === "" ? "Arguments" : name}</b> <span class="quiet">{limits}{required ? "" : ", optional"}</span></label>{removable ? <Remove form={form} path={path} name={name} /> : null}
    {children(id)}{about === "" ? null : <p class="quiet about">{about}</p>}</div>;
}

function Remove({ form, path, name }: { form: Form; path: Path; name: string }): JSX.Element {
  return <button type="button" class="link remove" aria-label={`Remove ${name}`} onClick={() => { form.note(path, undefined); form.remove(path); }}>remove</button>;
}

/** Options of any type: each keeps its own. */
function Choice({ id, value, options, onChange }: { id: string; value: unknown; options: readonly unknown[]; onChange: (value: unknown) => void }): JSX.Element {
  const at = options.findIndex((option) => canonicalText(option) === canonicalText(value));
  return <select id={id} value={String(at)} onChange={(event) => { const option = options[Number(event.currentTarget.value)]; if (option !== undefined) onChange(option); }}>
    {at < 0 ? <option value="-1">{inline(value)} (not a choice)</option> : null}
    {options.map((option, index) => <option key={index} value={String(index)}>{typeof option === "string" ? option : inline(option)}</option>)}
  </select>;
}

/** A text that stands for a value. While it cannot be read, the value stays what it was and nothing can be sent. */
function Typed({ id, form, path, shown, read, long = false }: FieldProps & { id: string; shown: string; read: (text: string) => Read; long?: boolean }): JSX.Element {
  const [typed, setTyped] = useState({ text: shown, shown, message: undefined as string | undefined });
  const text = typed.shown === shown ? typed.text : shown;
  // Changed elsewhere (the JSON beside it), or gone: what was typed here no longer counts.
  useEffect(() => { if (typed.shown !== shown) form.note(path, undefined); }, [shown]);
  useEffect(() => () => { form.note(path, undefined); }, []);
  const type = (next: string): void => {
    const result = read(next);
    form.note(path, result.ok ? undefined : result.message);
    setTyped({ text: next, shown: result.ok ? (long ? prettyValue(result.value) : String(result.value)) : shown, message: result.ok ? undefined : result.message });
    if (result.ok) form.set(path, result.value);
  };
  const shared = { id, class: "code", value: text, spellcheck: false, "aria-invalid": typed.message !== undefined };
  return long ? <textarea {...shared} rows={5} onInput={(event) => { type(event.currentTarget.value); }} />
    : <input {...shared} type="text" inputMode="decimal" autoComplete="off" onInput={(event) => { type(event.currentTarget.value); }} />;
}
