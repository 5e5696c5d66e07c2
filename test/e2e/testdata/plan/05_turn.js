const [sent, page, issue, file, list] = await Promise.all([
  tools.message({ to: "ann", text: "hi" }),
  tools.browser_request({ url: "https://example.org" }),
  MCP.github.createIssue({ title: "one of each" }),
  tools.select_file({ pattern: "*.md" }),
  notes.list({ day: "monday" }),
]);
return {
  openclaw: sent.text,
  plugin: page.method, // a default of its schema
  mcp: issue.structuredContent.number,
  client: file.pattern,
  namespace: list,
};
