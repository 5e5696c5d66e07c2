const sent = await tools.message({ to: "ann", text: "hi" });
const issue = await MCP.github.createIssue({ title: "traced" });
const answer = await tools.ask_person({ question: "now?" });
return [sent.text, issue.structuredContent.number, answer.question];
