// The service, as the page asks it.

export class Refused extends Error {}
export class Gone extends Error {}

async function ask(method, path, body) {
  const options = { method, headers: {} };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const answer = await fetch(path, options).catch(() => { throw new Gone("The service does not answer."); });
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}));
    const error = new Refused(problem.detail || `the service answered ${answer.status}`);
    error.status = answer.status;
    throw error;
  }
  return answer;
}

const json = async (method, path, body) => (await ask(method, path, body)).json();

export const model = () => json("GET", "/v1/model");
export const stats = () => json("GET", "/v1/stats");
export const node = (id) => json("GET", `/v1/nodes/${encodeURIComponent(id)}?neighbors=60`);
export const nearest = (what) => json("POST", "/v1/search", { k: 12, ...what });
export const recommend = (what) => json("POST", "/v1/recommend", { k: 12, ...what });
export const predict = (node) => json("POST", "/v1/predict", { nodes: [node] });
export const put = (node) => json("PUT", "/v1/nodes", { nodes: [node] });
export const changes = (since) => json("GET", `/v1/map/changes?since=${since}`);

export const attributes = () => json("GET", "/v1/map/attributes");
export const values = (name) => json("GET", `/v1/map/values?attribute=${encodeURIComponent(name)}`);
export const find = (text) => json("GET", `/v1/map/find?text=${encodeURIComponent(text)}`);

// The packed map: count, x, y, color, then the ids.
export async function points() {
  const answer = await ask("GET", "/v1/map");
  const buffer = await answer.arrayBuffer();
  const count = new DataView(buffer).getUint32(0, true);
  const x = new Float32Array(buffer.slice(4, 4 + 4 * count));
  const y = new Float32Array(buffer.slice(4 + 4 * count, 4 + 8 * count));
  const color = new Uint16Array(buffer.slice(4 + 8 * count, 4 + 10 * count));
  const ids = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4 + 10 * count)));
  return { x, y, color, ids, epoch: Number(answer.headers.get("X-Map-Epoch")) };
}
