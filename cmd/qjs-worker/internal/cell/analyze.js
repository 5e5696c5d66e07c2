// What the worker wants to know of a cell, found on acorn's syntax tree. This file is
// evaluated once, when the parser's image is built, behind faster.js; its value, given
// acorn, is the function that Go calls for each source, with the source as text and as
// UTF-16 units (or ASCII bytes). It never runs any of it.
//
// analyze(source, wants) gives JSON:
//
//   form    "statements" | "expression" | "function"
//   edits   [{at, remove, insert}, …] that turn the source into the body of an async
//           function, ascending; a source that needs none has an empty list
//   breaks  line breaks that QuickJS does not count (see addBreaks)
//   bare    the source consists of words and operators only, as a shell command may
//   error   {kind: "syntax"|"module"|"deep", message, pos}; nothing else is there then
//
// scan(source) gives JSON {module?: {message, pos}, exportDefault: bool}: what the
// tokens alone tell of a text that acorn cannot parse, TypeScript above all.
//
// All positions are in UTF-16 units.
(function (acorn, read) {
"use strict";

const {Parser, tokTypes: tt} = acorn;
const OPTIONS = {
  ecmaVersion: "latest",
  sourceType: "script",
  allowReturnOutsideFunction: true,
  allowAwaitOutsideFunction: true,
  allowHashBang: true,
  // Module syntax is parsed in order to be refused by name: as a script's syntax error
  // it would tell the model nothing (SPEC 5.1).
  allowImportExportEverywhere: true,
};

// --- acorn, adapted -------------------------------------------------------------

const proto = Parser.prototype;

// The message names what stands there; acorn's own is "Unexpected token" alone.
proto.unexpected = function (pos) {
  if (pos == null || pos === this.start) {
    if (this.type === tt.eof) this.raise(this.start, "Unexpected end of input");
    if (this.end > this.start) this.raise(this.start, "Unexpected token " + quoted(this.input.slice(this.start, this.end)));
  }
  this.raise(pos ?? this.start, "Unexpected token");
};

function quoted(text) {
  const line = /^[^\r\n\u2028\u2029]*/.exec(text)[0];
  return "'" + (line.length > 30 || line.length < text.length ? line.slice(0, 30).replace(/[\ud800-\udbff]$/, "") + "…" : line) + "'";
}

// Positions are turned into lines by Go, once.
proto.raise = proto.raiseRecoverable = function (pos, message) {
  const e = new SyntaxError(message);
  e.pos = pos;
  throw e;
};

// A stack overflow is told apart in analyze; here acorn would look for the words in
// messages, which quote the source.
proto.catchStackOverflow = f => f();

// The body runs inside a function, where `using` is allowed.
const allowUsing = Object.getOwnPropertyDescriptor(proto, "allowUsing").get;
Object.defineProperty(proto, "allowUsing", {configurable: true, get() {
  return this.scopeStack.length === 1 || allowUsing.call(this);
}});

// acorn's version calls itself once an operator: two thousand string pieces joined by
// + would count as nested too deeply, which QuickJS itself takes in its stride.
proto.parseExprOp = function (left, leftStart, leftLoc, minPrec, forInit) {
  for (;;) {
    let prec = this.type.binop;
    if (prec == null || forInit && this.type === tt._in || prec <= minPrec) return left;
    const logical = this.type === tt.logicalOR || this.type === tt.logicalAND;
    const coalesce = this.type === tt.coalesce;
    if (coalesce) prec = tt.logicalAND.binop; // so that right holds no logical expression
    const op = this.value;
    this.next();
    const start = this.start, loc = this.startLoc;
    const right = this.parseExprOp(this.parseMaybeUnary(null, false, false, forInit), start, loc, prec, forInit);
    left = this.buildBinary(leftStart, leftLoc, left, right, op, logical || coalesce);
    if (logical && this.type === tt.coalesce || coalesce && (this.type === tt.logicalOR || this.type === tt.logicalAND))
      this.raiseRecoverable(this.start, "?? cannot be mixed with || and && without parentheses");
  }
};

let exportsSeen = [];
const parseExport = proto.parseExport;
proto.parseExport = function (node, exports) {
  node = parseExport.call(this, node, exports);
  exportsSeen.push(node);
  return node;
};

// --- parsing --------------------------------------------------------------------

// parse gives {body, alone}: the program's statements. A source that is one expression
// but no statement comes as one ExpressionStatement, and alone is true: an object
// literal, which as a statement is a block with labels, and an anonymous function.
function parse(source) {
  const p = new Parser(OPTIONS, source);
  const node = p.startNode();
  exportsSeen = [];
  p.nextToken();
  const first = p.type, word = p.value;
  const mayBeExpression = first === tt.braceL || first === tt._function || first === tt._class || first === tt.name && word === "async";
  let failed;
  if (first === tt.braceL) {
    try { return parseExpression(source); } catch (e) { failed = e; }
  }
  try {
    return {body: p.parseTopLevel(node).body, alone: false};
  } catch (e) {
    if (!(e instanceof SyntaxError)) throw e;
    if (mayBeExpression && !failed) {
      try { return parseExpression(source); } catch (x) { failed = x; }
    }
    // Of two readings, the one that got further is what was meant.
    throw failed instanceof SyntaxError && failed.pos > e.pos ? failed : e;
  }
}

function parseExpression(source) {
  const p = new Parser(OPTIONS, source);
  exportsSeen = [];
  p.nextToken();
  return {body: [wholeExpression(p)], alone: true};
}

function wholeExpression(p) {
  const start = p.start;
  const expression = p.parseExpression();
  const end = p.lastTokEnd;
  while (p.eat(tt.semi));
  if (p.type !== tt.eof) p.unexpected();
  return {type: "ExpressionStatement", start, end, expression};
}

// --- form -----------------------------------------------------------------------

const isFunction = n => (n.type === "FunctionDeclaration" || n.type === "FunctionExpression" || n.type === "ArrowFunctionExpression") && !n.generator;

// shape decides the form and the edits. A function is called on a line of its own, so
// that QuickJS attributes the frame of our call to our text, which is not shown. Another
// value is assigned to the wrapper's parameter first: QuickJS knows the place of an
// expression statement, and none of a return's, where a literal has none of its own
// (`null.b`).
function shape(source, body) {
  const edits = [];
  const edit = (at, remove, insert) => edits.push({at, remove, insert});
  const returned = (start, end, call) => {
    edit(start, 0, call ? "return (" : "__codemode_value = (0,");
    edit(end, 0, call ? "\n)()" : "); return __codemode_value");
  };
  const done = form => ({form, edits});
  if (source.startsWith("#!")) edit(0, 2, "//");

  body = body.filter(s => s.type !== "EmptyStatement");
  const at = body.findIndex(s => s.type === "ExportDefaultDeclaration");
  if (at >= 0) return exported(source, body, at, edit, returned, done);

  if (body.length === 1) {
    const [s] = body;
    if (s.type === "FunctionDeclaration" && isFunction(s)) return returned(s.start, s.end, true), done("function");
    if (s.type === "ExpressionStatement") {
      const call = isFunction(s.expression);
      return returned(s.start, endOf(source, s), call), done(call ? "function" : "expression");
    }
  }
  // Function declarations are hoisted and have no value: `main(); function main() {…}`
  // ends with an expression, as it does for eval.
  let last = body.length - 1;
  while (last >= 0 && body[last].type === "FunctionDeclaration") last--;
  if (last >= 0 && body[last].type === "ExpressionStatement") returned(body[last].start, endOf(source, body[last]), false);
  return done("statements");
}

// endOf is where an expression statement's expression ends, parentheses included.
function endOf(source, s) {
  return source[s.end - 1] === ";" ? s.end - 1 : s.end;
}

// exported handles `export default`: a function is called, another expression is the
// value. A function with a name stays a declaration, which others may refer to, and is
// called at the end. Behind anything else only function declarations may follow: they
// are hoisted.
function exported(source, body, at, edit, returned, done) {
  const s = body[at], d = s.declaration;
  if (d.type === "ClassDeclaration") fail(s.start, "'export default' of a class gives a cell nothing to run: export a function, or return a value");
  edit(s.start, d.from - s.start, "");
  if (d.type === "FunctionDeclaration" && d.id && isFunction(d)) {
    edit(body[body.length - 1].end, 0, "\n;return " + d.id.name + "()");
    return done("function");
  }
  if (!body.slice(at + 1).every(r => r.type === "FunctionDeclaration"))
    fail(s.start, "'export default' of an expression must be the cell's last statement");
  returned(d.from, d.type === "FunctionDeclaration" ? d.end : endOf(source, s), isFunction(d));
  return done(isFunction(d) ? "function" : body.length === 1 ? "expression" : "statements");
}

// The declaration keeps where it begins in the text, parentheses included.
const parseExportDefault = proto.parseExportDefaultDeclaration;
proto.parseExportDefaultDeclaration = function () {
  const from = this.start;
  const d = parseExportDefault.call(this);
  d.from = from;
  return d;
};

function fail(pos, message) {
  const e = new SyntaxError(message);
  e.pos = pos;
  throw e;
}

// --- modules --------------------------------------------------------------------

// modules looks for module access in the tree (SPEC 5.1) and gives the first one in
// the text. It keeps its own stack: a chain of calls may nest deeper than ours.
//
// Only one name matters to the scope analysis, so a scope is one bit: whether
// `require` is bound there. Once bound it stays bound in everything inside.
function modules(body) {
  let found;
  const report = (node, what) => {
    if (!found || node.start < found.pos) found = {pos: node.start, message: what};
  };
  const todo = [{node: {type: "Program", body}, bound: declares(body, true)}];
  while (todo.length) {
    let {node, bound} = todo.pop();
    switch (node.type) {
    case "ImportDeclaration":
      report(node, "import declarations do not work here");
      continue;
    case "ExportAllDeclaration":
      report(node, "export … from does not work here");
      continue;
    case "ExportNamedDeclaration":
      if (node.source) report(node, "export … from does not work here");
      break;
    case "ImportExpression":
      report(node, "import() does not work here");
      break;
    case "MetaProperty":
      if (node.meta.name === "import") report(node, "import.meta does not exist here");
      continue;
    case "CallExpression":
    case "NewExpression":
      if (!bound && isRequire(node.callee)) report(node, "require() does not exist here");
      break;
    case "TaggedTemplateExpression":
      if (!bound && isRequire(node.tag)) report(node, "require does not exist here");
      break;
    case "FunctionDeclaration":
    case "FunctionExpression":
    case "ArrowFunctionExpression": {
      const inside = bound || node.type !== "FunctionDeclaration" && named(node.id) || node.params.some(binds);
      for (const p of node.params) todo.push({node: p, bound: inside});
      todo.push({node: node.body, bound: inside || node.body.type === "BlockStatement" && declares(node.body.body, true)});
      continue;
    }
    case "ClassDeclaration":
    case "ClassExpression":
      bound ||= named(node.id);
      break;
    case "BlockStatement":
      bound ||= declares(node.body, false);
      break;
    case "StaticBlock":
      bound ||= declares(node.body, true);
      break;
    case "SwitchStatement":
      todo.push({node: node.discriminant, bound});
      bound ||= node.cases.some(c => declares(c.consequent, false));
      for (const c of node.cases) todo.push({node: c, bound});
      continue;
    case "ForStatement":
      bound ||= !!node.init && declares([node.init], false);
      break;
    case "ForInStatement":
    case "ForOfStatement":
      bound ||= declares([node.left], false);
      break;
    case "CatchClause":
      bound ||= binds(node.param);
      break;
    }
    for (const key in node) {
      const child = node[key];
      if (child === null || typeof child !== "object") continue;
      if (Array.isArray(child)) {
        for (const c of child) if (c && c.type) todo.push({node: c, bound});
      } else if (typeof child.type === "string") {
        todo.push({node: child, bound});
      }
    }
  }
  return found;
}

const named = id => !!id && id.name === "require";

// isRequire tells whether an expression's value may be what the name require stands for.
function isRequire(node) {
  for (;;) {
    switch (node.type) {
    case "Identifier": return node.name === "require";
    case "ChainExpression": node = node.expression; break;
    case "SequenceExpression": node = node.expressions[node.expressions.length - 1]; break;
    case "AssignmentExpression": node = node.right; break;
    case "LogicalExpression": if (isRequire(node.left)) return true; node = node.right; break;
    case "ConditionalExpression": if (isRequire(node.consequent)) return true; node = node.alternate; break;
    default: return false;
    }
  }
}

// binds tells whether a pattern binds the name.
function binds(pattern) {
  if (!pattern) return false;
  switch (pattern.type) {
  case "Identifier": return pattern.name === "require";
  case "ObjectPattern": return pattern.properties.some(p => binds(p.type === "RestElement" ? p.argument : p.value));
  case "ArrayPattern": return pattern.elements.some(binds);
  case "AssignmentPattern": return binds(pattern.left);
  case "RestElement": return binds(pattern.argument);
  }
  return false;
}

// declares tells whether statements bind the name in their scope. hoist: the scope is
// a function's, so var and (in sloppy code) function declarations of inner blocks count.
function declares(statements, hoist) {
  const todo = statements.map(node => ({node, top: true}));
  while (todo.length) {
    const {node, top} = todo.pop();
    switch (node.type) {
    case "VariableDeclaration":
      if ((top || hoist && node.kind === "var") && node.declarations.some(d => binds(d.id))) return true;
      break;
    case "FunctionDeclaration":
      if ((top || hoist) && named(node.id)) return true;
      break;
    case "ClassDeclaration":
      if (top && named(node.id)) return true;
      break;
    case "ExportNamedDeclaration":
    case "ExportDefaultDeclaration":
      if (node.declaration) todo.push({node: node.declaration, top});
      break;
    case "LabeledStatement":
      todo.push({node: node.body, top});
      break;
    default:
      if (!hoist || !/Statement|Clause|SwitchCase/.test(node.type)) break;
      for (const key of INNER) {
        const child = node[key];
        if (Array.isArray(child)) { for (const c of child) todo.push({node: c, top: false}); }
        else if (child && child.type) todo.push({node: child, top: false});
      }
    }
  }
  return false;
}

// The fields that hold statements (and the heads of for loops, which may hold var).
const INNER = ["body", "consequent", "alternate", "block", "handler", "finalizer", "cases", "init", "left"];

// scanTokens looks for module declarations at the start of statements outside of all
// brackets, and for the type import("x") anywhere. The tokenizer reads TypeScript
// well enough for that; where it stumbles the search ends, and the parser decides.
function scanTokens(source, types) {
  const tokens = [];
  try {
    for (const t of new Parser(OPTIONS, source)) tokens.push(t);
  } catch (e) {
    if (!(e instanceof SyntaxError)) throw e;
  }
  const is = (t, type, value) => !!t && t.type === type && (value === undefined || t.value === value);
  const result = {exportDefault: false};
  const report = (t, what) => { result.module ??= {pos: t.start, message: what}; };
  let depth = 0;
  for (let i = 0; i < tokens.length && !result.module; i++) {
    const t = tokens[i], prev = tokens[i - 1], next = tokens[i + 1];
    switch (t.type) {
    case tt.braceL: case tt.parenL: case tt.bracketL: case tt.dollarBraceL:
      depth++;
      continue;
    case tt.braceR: case tt.parenR: case tt.bracketR:
      depth--;
      continue;
    case tt._import:
      if (types && is(next, tt.parenL) && is(tokens[i + 2], tt.string) && !is(prev, tt.dot) && !is(prev, tt.questionDot)) {
        report(t, "import() does not work here");
        continue;
      }
      break;
    case tt._export:
      break;
    default:
      continue;
    }
    const starts = !prev || is(prev, tt.semi) || is(prev, tt.braceR) || /[\r\n\u2028\u2029]/.test(source.slice(prev.end, t.start));
    if (depth !== 0 || !starts && !is(prev, tt._export)) continue;
    if (t.type === tt._export && is(next, tt._default)) { result.exportDefault = true; continue; }
    if (fromClause(tokens, i, is)) report(t, t.type === tt._import ? "import declarations do not work here" : "export … from does not work here");
  }
  return result;
}

// fromClause tells whether the import or export at tokens[i] goes on as a declaration
// that names a module.
function fromClause(tokens, i, is) {
  const isImport = tokens[i].type === tt._import;
  if (isImport && is(tokens[i + 1], tt.string)) return true;
  for (let j = i + 1; j < tokens.length; j++) {
    const t = tokens[j];
    if (is(t, tt.name, "from") && is(tokens[j + 1], tt.string)) return j > i + 1;
    if (isImport && is(t, tt.eq)) return is(tokens[j + 1], tt.name, "require");
    if (!(t.type === tt.name || t.type.keyword || t.type === tt.comma || t.type === tt.star || t.type === tt.braceL || t.type === tt.braceR || t.type === tt.string)) return false;
  }
  return false;
}

// --- the rest -------------------------------------------------------------------

// isBare tells whether statements are words and operators only. Such a source can do
// nothing but look names up.
function isBare(body) {
  const todo = body.map(s => s.type === "ExpressionStatement" ? s.expression : s);
  while (todo.length) {
    const n = todo.pop();
    switch (n.type) {
    case "Identifier": case "Literal": break;
    case "UnaryExpression": todo.push(n.argument); break;
    case "BinaryExpression": case "LogicalExpression": todo.push(n.left, n.right); break;
    case "MemberExpression":
      if (n.computed) return false;
      todo.push(n.object);
      break;
    case "EmptyStatement": break;
    default: return false;
    }
  }
  return true;
}

// addBreaks deals with the line breaks that QuickJS-ng does not count in its positions:
// U+2028 and U+2029 in strings and templates stay and are listed in breaks. Those in
// comments and behind a line comment, and a lone CR in a block comment, where columns
// go wrong as well, become LF, which they stand for.
function addBreaks(source, alone, result) {
  if (!/\r(?!\n)|[\u2028\u2029]/.test(source)) return;
  const texts = [], edits = [];
  const look = (start, end, re, found) => {
    for (let i = start; i < end; i++) if (re.test(source.slice(i, i + 2))) found(i);
  };
  const p = new Parser({...OPTIONS,
    onComment: (block, _, start, end) => look(start, block ? end : end + 1, block ? /^(?:\r(?!\n)|[\u2028\u2029])/ : /^[\u2028\u2029]/,
      at => edits.push({at, remove: 1, insert: "\n"})),
    onToken: t => {
      if (t.type === tt.string || t.type === tt.template || t.type === tt.invalidTemplate)
        look(t.start, t.end, /^[\u2028\u2029]/, at => texts.push(at));
    },
  }, source);
  const node = p.startNode();
  p.nextToken();
  if (alone) wholeExpression(p); else p.parseTopLevel(node);
  // acorn may report a comment twice; an edit of ours may have removed it.
  result.breaks = [...new Set(texts)].sort((a, b) => a - b);
  let end = 0;
  result.edits = [...result.edits, ...edits].sort((a, b) => a.at - b.at).filter(e => {
    const stays = e.at >= end;
    if (stays) end = e.at + e.remove;
    return stays;
  });
}

function guarded(f) {
  try {
    return JSON.stringify(f());
  } catch (e) {
    if (e instanceof SyntaxError && typeof e.pos === "number") return JSON.stringify({error: {kind: "syntax", message: e.message, pos: e.pos}});
    if (e instanceof RangeError) return JSON.stringify({error: {kind: "deep", message: e.message, pos: 0}});
    throw e;
  }
}

const analyze = (source, wantBare) => guarded(() => {
  let body, alone;
  try {
    ({body, alone} = parse(source));
  } catch (e) {
    if (!(e instanceof SyntaxError) || !/import|export/.test(source)) throw e;
    const {module} = scanTokens(source, false);
    if (!module) throw e;
    return {error: {kind: "module", ...module}};
  }
  const module = /import|require|export|\\u/.test(source) && modules(body);
  if (module) return {error: {kind: "module", ...module}};
  for (const node of exportsSeen)
    if (node.type !== "ExportDefaultDeclaration" || !body.includes(node))
      fail(node.start, "'export' works in a cell only as one 'export default' at the top level; return the value instead");
  const result = shape(source, body);
  addBreaks(source, alone, result);
  if (wantBare) result.bare = isBare(body);
  return result;
});

const scan = source => guarded(() => scanTokens(source, true));

return (what, source, bytes, wide, flag) => {
  read(bytes, wide);
  return what === "scan" ? scan(source) : analyze(source, flag);
};
})
