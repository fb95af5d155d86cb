// The OpenAPI description as a page that can be read.

import { element } from "/static/panel.js";

function resolved(schema, all, depth = 0) {
  if (!schema || depth > 12) return "…";
  if (schema.$ref) return resolved(all[schema.$ref.split("/").pop()], all, depth + 1);
  const choices = schema.oneOf || schema.anyOf;
  if (choices) {
    const each = choices.map((choice) => resolved(choice, all, depth + 1)).filter((choice) => choice !== "null");
    if (each.every((choice) => typeof choice === "string")) return each.concat(schema.description || []).join(" | ");
    return each.length === 1 ? each[0] : { "one of": each };
  }
  if (schema.type === "array" && schema.items) return [resolved(schema.items, all, depth + 1)];
  if (schema.properties) {
    return Object.fromEntries(Object.entries(schema.properties).map(([name, each]) =>
      [name + ((schema.required || []).includes(name) ? "" : "?"), resolved(each, all, depth + 1)]));
  }
  return [schema.type || "any", schema.enum && schema.enum.join(" | "), schema.description].filter(Boolean).join(": ");
}

function route(path, method, said, all) {
  const parts = [element("summary", {}, element("span", { class: "method" }, method.toUpperCase()),
    element("code", {}, path), ` ${said.summary || ""}`), element("p", {}, (said.description || "").replaceAll("`", ""))];
  for (const each of said.parameters || []) {
    parts.push(element("p", {}, element("code", {}, each.name), ` in the ${each.in}`));
  }
  const shown = (title, schema) => parts.push(element("p", {}, title),
    element("pre", {}, JSON.stringify(resolved(schema, all), null, 2)));
  const show = (title, content) => {
    for (const [type, { schema }] of Object.entries(content || {})) {
      if (type === "application/json" || type === "application/x-ndjson") {
        shown(`${title}: ${type}`, schema);
        const example = schema.$ref && all[schema.$ref.split("/").pop()].examples;
        if (example) parts.push(element("p", {}, "Example"), element("pre", {}, JSON.stringify(example[0], null, 2)));
      } else parts.push(element("p", {}, `${title}: ${type}`));
    }
  };
  show("Body", said.requestBody && said.requestBody.content);
  show("Answer", (said.responses["200"] || {}).content);
  const errors = Object.keys(said.responses).filter((status) => status >= "400");
  if (errors.length) parts.push(element("p", {}, `Errors: ${errors.join(", ")} (application/problem+json)`));
  return element("details", {}, ...parts);
}

const openapi = await (await fetch("/openapi.json")).json();
const made = Object.entries(openapi.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, said]) => route(path, method, said, openapi.components.schemas)));
document.getElementById("routes").replaceChildren(...made);
