const made = await MCP.github.createIssue({ title: "it leaks" });
const list = await MCP.github.listIssues({});
const failed = await MCP.github.createIssue({ title: "" }); // the server says isError
text(made.structuredContent.number);
const attempt = (f) => f().then(() => "reached", () => "no tool");
return {
  issue: made.structuredContent,
  text: made.content[0].text,
  listed: list.structuredContent.titles,
  failed: failed.isError,
  all: ALL_TOOLS.filter((t) => t.source === "mcp" || /issue/i.test(t.name)),
  functions: Object.keys(tools).filter((name) => /issue/i.test(name)),
  found: (await tools.search("create issue")).filter((hit) => hit.source === "mcp"),
  called: await attempt(() => tools.call("mcp:github:create_issue", { title: "direct" })),
  described: await attempt(() => tools.describe("mcp:github:create_issue")),
};
