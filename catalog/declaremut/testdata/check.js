// Compiles the files of the request as tsc --strict does, in one program, and says what
// is declared in them.
//
//   node check.js <directory of typescript> <request.json >answer.json
//
// Request: { files: { name: text } }. Answer: { diagnostics: [{ file, line, code, message }],
// outline: { file: ["namespace MCP.x", "namespace MCP.x > function f(a, b)", …] } }, where
// the names in brackets are the properties of the parameter.
"use strict";
const path = require("node:path");
const dir = process.argv[2];
const ts = require(path.join(dir, "lib", "typescript.js"));
const { files } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));

const options = { strict: true, target: ts.ScriptTarget.ES2022, lib: ["lib.es2022.d.ts"], types: [], noEmit: true, skipLibCheck: false };
const host = ts.createCompilerHost(options);
const { getSourceFile, fileExists, readFile } = host;
const has = (name) => Object.hasOwn(files, name);
host.getSourceFile = (name, ...rest) =>
  has(name) ? ts.createSourceFile(name, files[name], ...rest) : getSourceFile(name, ...rest);
host.fileExists = (name) => has(name) || fileExists(name);
host.readFile = (name) => (has(name) ? files[name] : readFile(name));
host.getDefaultLibLocation = () => path.join(dir, "lib");

const program = ts.createProgram(Object.keys(files), options, host);
const diagnostics = ts.getPreEmitDiagnostics(program).map((d) => ({
  file: d.file?.fileName ?? "",
  line: d.file ? d.file.getLineAndCharacterOfPosition(d.start).line + 1 : 0,
  code: d.code,
  message: ts.flattenDiagnosticMessageText(d.messageText, "\n").slice(0, 1000),
}));

function declared(node, prefix, list) {
  const kind = ts.SyntaxKind[node.kind];
  const text = (name) => (name && name.text !== undefined ? name.text : name ? name.getText() : "?");
  const add = (what, name) => list.push(prefix + what + " " + name);
  const call = (what) => {
    const type = node.parameters.at(-1)?.type;
    const keys = type && ts.isTypeLiteralNode(type) ? type.members.filter(ts.isPropertySignature).map((m) => text(m.name)) : [];
    add(what, text(node.name) + "(" + JSON.stringify(keys).slice(1, -1) + ")");
  };
  if (ts.isModuleDeclaration(node)) {
    let name = text(node.name), body = node.body;
    while (body && ts.isModuleDeclaration(body)) {
      name += "." + text(body.name);
      body = body.body;
    }
    add("namespace", name);
    for (const s of body.statements) declared(s, prefix + "namespace " + name + " > ", list);
  } else if (ts.isInterfaceDeclaration(node)) {
    add("interface", text(node.name));
    for (const m of node.members) declared(m, prefix + "interface " + text(node.name) + " > ", list);
  } else if (ts.isFunctionDeclaration(node)) call("function");
  else if (ts.isMethodSignature(node)) call("method");
  else if (ts.isTypeAliasDeclaration(node)) add("type", text(node.name));
  else if (ts.isVariableStatement(node)) add("var", node.declarationList.declarations.map((d) => text(d.name)).join());
  else add(kind, "");
}

const outline = {};
for (const name of Object.keys(files)) {
  if (!name.endsWith(".d.ts")) continue;
  outline[name] = [];
  for (const s of program.getSourceFile(name).statements) declared(s, "", outline[name]);
}
process.stdout.write(JSON.stringify({ diagnostics, outline }));
