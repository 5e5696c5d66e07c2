// The parts of acorn that run once a character or once a token, rewritten for an
// interpreter: QuickJS inside of wasm pays for every call and every property. Each
// function here does what acorn's own does, or leaves the case to it; that both give
// the same trees is tested (TestFasterIsAcorn). The options of analyze.js are taken
// for granted: no locations, no ranges.
//
// The value is a function: faster(acorn) gives read(bytes, wide), which sets the source
// under way as UTF-8 that is all ASCII, or as UTF-16 if wide. Without it nothing works.
(function (acorn) {
"use strict";

const {Parser, tokTypes: tt} = acorn;
const proto = Parser.prototype;
const {strictDirective, skipSpace, readWord1, readToken, next, parseStatement, parseMaybeAssign, parseMaybeUnary, parseSubscript, parseExprAtom,
  parseIdent, checkUnreserved} = proto;

// The UTF-16 units of the source: a typed array is three times as fast as charCodeAt.
let codes = new Uint8Array(0);

// By character: may it start an identifier (2), continue one (1)? ASCII only.
const IDENT = new Uint8Array(128);
for (let c = 0; c < 128; c++)
  IDENT[c] = acorn.isIdentifierStart(c) ? 2 : acorn.isIdentifierChar(c) ? 1 : 0;

// Characters that are tokens by themselves.
const PUNCTUATION = [];
for (const [c, type] of Object.entries({"(": tt.parenL, ")": tt.parenR, ";": tt.semi, ",": tt.comma, "[": tt.bracketL,
  "]": tt.bracketR, "{": tt.braceL, "}": tt.braceR, ":": tt.colon})) PUNCTUATION[c.charCodeAt(0)] = type;

const OTHERS = [];
const dispatch = (chars, f) => { for (const c of chars) OTHERS[c.charCodeAt(0)] = f; };
dispatch("`", p => { p.pos++; p.finishToken(tt.backQuote); });
dispatch(".", p => p.readToken_dot());
dispatch("123456789", p => p.readNumber(false));
dispatch("'\"", (p, c) => p.readString(c));
dispatch("/", p => p.readToken_slash());
dispatch("%*", (p, c) => p.readToken_mult_modulo_exp(c));
dispatch("|&", (p, c) => p.readToken_pipe_amp(c));
dispatch("+-", (p, c) => p.readToken_plus_min(c));
dispatch("<>", (p, c) => p.readToken_lt_gt(c));
dispatch("=!", (p, c) => p.readToken_eq_excl(c));
dispatch("?", p => p.readToken_question());

const KEYWORDS = new Map(Object.entries(acorn.keywordTypes));

// Names that acorn asks about by more than their spelling.
const SPECIAL = new Set(["let", "async", "await", "yield", "using", "static", "of", "get", "set", "eval", "arguments",
  "enum", "implements", "interface", "package", "private", "protected", "public", ...KEYWORDS.keys()]);

// --- tokens ---------------------------------------------------------------------

proto.skipSpace = function () {
  let pos = this.pos, c = codes[pos];
  while (c === 32 || c === 10) c = codes[++pos];
  this.pos = pos;
  // A comment, a rarer space, or anything that is not ASCII.
  if (c < 14 || c > 127 || c === 47 && (codes[pos + 1] === 47 || codes[pos + 1] === 42)) skipSpace.call(this);
};

// Behind a number acorn asks whether an identifier begins there. At the end of the source that
// is NaN, which it compares with each of some hundred ranges.
const {fullCharCodeAtPos} = proto;
proto.fullCharCodeAtPos = function () {
  return this.pos < this.input.length ? fullCharCodeAtPos.call(this) : 0;
};

proto.readWord1 = function () {
  const start = this.pos;
  let pos = start;
  while (IDENT[codes[pos]]) pos++;
  const c = codes[pos];
  if (c === 92 || c > 127) return readWord1.call(this);
  this.pos = pos;
  this.containsEsc = false;
  return this.input.slice(start, pos);
};

proto.readWord = function () {
  const word = this.readWord1();
  if (SPECIAL.has(word)) return this.finishToken(KEYWORDS.get(word) ?? tt.name, word);
  this.end = this.pos;
  this.type = tt.name;
  this.value = word;
  this.exprAllowed = false;
};

proto.next = function (escapes) {
  if (this.containsEsc || this.options.onToken) return next.call(this, escapes);
  this.lastTokEnd = this.end;
  this.lastTokStart = this.start;
  this.nextToken();
};

proto.nextToken = function () {
  const {context} = this, top = context[context.length - 1];
  if (!top || !top.preserveSpace) this.skipSpace();
  const pos = this.start = this.pos, c = codes[pos];
  if (c === undefined) return this.finishToken(tt.eof);
  if (top.override) return top.override(this);
  if (IDENT[c] === 2) return this.readWord();
  const type = PUNCTUATION[c];
  if (type) { this.pos = pos + 1; return this.finishToken(type); }
  const f = OTHERS[c];
  if (f) return f(this, c);
  readToken.call(this, this.fullCharCodeAtPos());
};

proto.finishToken = function (type, value) {
  this.end = this.pos;
  const before = this.type;
  this.type = type;
  this.value = value;
  const update = type.updateContext;
  if (type.keyword && before === tt.dot) this.exprAllowed = false;
  else if (update) update.call(this, before);
  else this.exprAllowed = type.beforeExpr;
};

// Called for each function body. acorn's looks for a string literal with a regular
// expression that, without the y flag, tries every position of the rest of the source.
proto.strictDirective = function (start) {
  let pos = start, c = codes[pos];
  for (;;) {
    if (c === 32 || c > 8 && c < 14) {
      pos++;
    } else if (c === 47 && codes[pos + 1] === 47) {
      while (c !== undefined && c !== 10 && c !== 13 && c !== 0x2028 && c !== 0x2029) c = codes[++pos];
      if (c > 127) pos++;
    } else if (c === 47 && codes[pos + 1] === 42) {
      const end = this.input.indexOf("*/", pos + 2);
      if (end < 0) return false;
      pos = end + 2;
    } else {
      break;
    }
    c = codes[pos];
  }
  return (c === 39 || c === 34 || c > 127) && strictDirective.call(this, pos);
};

// --- nodes ----------------------------------------------------------------------

proto.startNode = function () { return {type: "", start: this.start, end: 0}; };
proto.startNodeAt = (start, _) => ({type: "", start, end: 0});
proto.finishNode = function (node, type) {
  node.type = type;
  node.end = this.lastTokEnd;
  return node;
};

// --- statements and expressions ---------------------------------------------------

proto.parseStatement = function (context, topLevel, exports) {
  const {type, value} = this;
  if (type === tt.name) {
    if (!SPECIAL.has(value)) {
      const node = this.startNode(), expr = this.parseExpression();
      if (expr.type === "Identifier" && this.eat(tt.colon)) return this.parseLabeledStatement(node, value, expr, context);
      return this.parseExpressionStatement(node, expr);
    }
  } else if (!context) {
    if (type === tt._const) return this.parseVarStatement(this.startNode(), value);
    if (type === tt._return) return this.parseReturnStatement(this.startNode());
    if (type === tt._if) return this.parseIfStatement(this.startNode());
  }
  return parseStatement.call(this, context, topLevel, exports);
};

// Argument, element and operand lists are full of single words and literals. What
// follows tells whether one is all there is.
const ENDS = [];
for (const c of ",)]};") ENDS[c.charCodeAt(0)] = true;

proto.parseMaybeAssign = function (forInit, errors, afterLeft) {
  const {type} = this;
  if ((type === tt.name || type === tt.string || type === tt.num) && !afterLeft) {
    let pos = this.pos;
    while (codes[pos] === 32) pos++;
    if (ENDS[codes[pos]]) {
      if (type !== tt.name) return this.parseLiteral(this.value);
      if (!SPECIAL.has(this.value)) return this.parseIdent(false);
    }
  }
  return parseMaybeAssign.call(this, forInit, errors, afterLeft);
};

proto.parseExpression = function (forInit, errors) {
  const {start} = this;
  const expr = this.parseMaybeAssign(forInit, errors);
  if (this.type !== tt.comma) return expr;
  const node = this.startNodeAt(start);
  node.expressions = [expr];
  while (this.eat(tt.comma)) node.expressions.push(this.parseMaybeAssign(forInit, errors));
  return this.finishNode(node, "SequenceExpression");
};

// The operators that make an operand more than its atom and subscripts.
const AROUND = new Set([tt.incDec, tt.starstar]);

proto.parseMaybeUnary = function (errors, sawUnary, incDec, forInit) {
  if (this.type !== tt.name || SPECIAL.has(this.value) || incDec || sawUnary)
    return parseMaybeUnary.call(this, errors, sawUnary, incDec, forInit);
  const {start} = this;
  let expr = this.parseExprSubscripts(errors, forInit);
  if (!AROUND.has(this.type) || this.checkExpressionErrors(errors)) return expr;
  while (this.type.postfix && !this.canInsertSemicolon()) {
    const node = this.startNodeAt(start);
    node.operator = this.value;
    node.prefix = false;
    node.argument = expr;
    this.checkLValSimple(expr);
    this.next();
    expr = this.finishNode(node, "UpdateExpression");
  }
  if (!(expr.type === "ArrowFunctionExpression" && expr.start === start) && this.eat(tt.starstar))
    return this.buildBinary(start, null, expr, this.parseMaybeUnary(null, false, false, forInit), "**", false);
  return expr;
};

proto.parseIdent = function (liberal) {
  const {type, value} = this;
  if (type !== tt.name || !liberal && SPECIAL.has(value)) return parseIdent.call(this, liberal);
  const node = {type: "Identifier", start: this.start, end: this.end, name: value};
  this.next();
  return node;
};

proto.parseSubscript = function (base, start, loc, noCalls, maybeAsyncArrow, chained, forInit) {
  if (this.type !== tt.dot) return parseSubscript.call(this, base, start, loc, noCalls, maybeAsyncArrow, chained, forInit);
  this.next();
  const property = this.type === tt.privateId && base.type !== "Super" ? this.parsePrivateIdent() : this.parseIdent(true);
  return {type: "MemberExpression", start, end: this.lastTokEnd, object: base, property, computed: false, optional: false};
};

proto.parseExprAtom = function (errors, forInit, forNew) {
  const {type} = this;
  if (type === tt.name) {
    if (!SPECIAL.has(this.value)) {
      const {start} = this, arrow = this.potentialArrowAt === start;
      const id = this.parseIdent(false);
      if (arrow && this.type === tt.arrow && !this.canInsertSemicolon()) {
        this.next();
        return this.parseArrowExpression(this.startNodeAt(start), [id], false, forInit);
      }
      return id;
    }
  } else if (type === tt.string || type === tt.num) {
    return this.parseLiteral(this.value);
  }
  return parseExprAtom.call(this, errors, forInit, forNew);
};

const SUBSCRIPTS = new Set([tt.dot, tt.bracketL, tt.parenL, tt.questionDot, tt.backQuote]);

proto.parseSubscripts = function (base, start, loc, noCalls, forInit) {
  if (!SUBSCRIPTS.has(this.type)) return base;
  let maybeAsyncArrow = base.type === "Identifier" && base.name === "async" && this.lastTokEnd === base.end &&
    !this.canInsertSemicolon() && base.end - base.start === 5 && this.potentialArrowAt === base.start;
  let chained = false;
  for (;;) {
    let element = this.parseSubscript(base, start, loc, noCalls, maybeAsyncArrow, chained, forInit);
    if (element.optional) chained = true;
    if (element.end === base.end || element.type === "ArrowFunctionExpression" || !SUBSCRIPTS.has(this.type)) {
      if (!chained) return element;
      const chain = this.startNodeAt(start);
      chain.expression = element;
      return this.finishNode(chain, "ChainExpression");
    }
    base = element;
    maybeAsyncArrow = false;
  }
};

proto.checkUnreserved = function (id) {
  if (SPECIAL.has(id.name)) checkUnreserved.call(this, id);
};

return (bytes, wide) => { codes = wide ? new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 1) : bytes; };
})
