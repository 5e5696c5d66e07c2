const files = await API.list("mcp");
const header = await API.read("mcp/github.d.ts");
const inline = await MCP.github.$api("createIssue", { schema: true });
return {
  paths: files.map((f) => f.path).sort(),
  create: /\bcreateIssue\b/.test(header),
  title: /\btitle\b/.test(header),
  list: /\blistIssues\b/.test(header),
  hidden: !/delete/i.test(header), // the policy denies it
  inline: JSON.stringify(inline).includes("createIssue"),
};
