const wanted = [
  ["send a message to a person", { to: "ann", text: "hi" }],
  ["run a shell command", { command: "ls" }],
  ["fetch a web page", { url: "https://example.org" }],
  ["choose a file", { pattern: "*.md" }],
];
const found = [];
for (const [query, input] of wanted) {
  const [hit] = await tools.search(query, { limit: 1 });
  const { id, parameters } = await tools.describe(hit.id);
  text(id);
  found.push({ id, required: parameters.required, result: await tools.call(id, input) });
}
return found;
