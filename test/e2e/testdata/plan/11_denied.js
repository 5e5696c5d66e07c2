// Each function tries one way of naming a tool that the policy denies.
const ways = {
  id: () => tools.call("plugin:db:drop_table", {}),
  name: () => tools.call("drop_table", {}),
  describe: () => tools.describe("plugin:db:drop_table"),
  convenience: () => tools.drop_table({}),
  computed: () => tools["drop" + "_table"]({}),
  spaces: () => tools.call(" plugin:db:drop_table ", {}),
  upper: () => tools.call("PLUGIN:DB:DROP_TABLE", {}),
  wide: () => tools.call("plugin:db:drop\uff3ftable", {}),
  mcpId: () => tools.call("mcp:github:delete_repo", {}),
  mcpPath: () => MCP.github.deleteRepo({}),
  mcpName: () => MCP.github["delete_repo"]({}),
  namespace: () => namespaces.db.drop_table({}),
};
const reached = [];
for (const [way, attempt] of Object.entries(ways)) {
  try {
    reached.push([way, await attempt()]);
  } catch {}
}
const message = (id) => tools.call(id, {}).then(() => "reached", (e) => e.message.replaceAll(id, "ID").split("\n")[0].split(";")[0]);
const everything = JSON.stringify([ALL_TOOLS, Object.keys(tools), Object.keys(MCP.github), await API.list(), await tools.search("drop table delete repo")]);
return {
  reached,
  shown: /drop_?table|delete_?repo/i.test(everything),
  same: (await message("plugin:db:drop_table")) === (await message("plugin:db:drip_toble")),
};
