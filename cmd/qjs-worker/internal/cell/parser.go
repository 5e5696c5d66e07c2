package cell

import (
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
)

//go:embed analyze.js
var analyzeJS string

//go:embed faster.js
var fasterJS string

// MaxParserMemory is the heap of a parser's VM, in bytes. A syntax tree takes about
// sixty bytes for one of source, so it is enough for some megabytes of source.
const MaxParserMemory = 256 << 20

// buildTime is the clock of a VM that is made into an image, so that the same engine
// and the same acorn give the same bytes.
var buildTime = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// BuildImage makes the start image of parsers: a VM with acorn (the text of
// dist/acorn.js) and analyze.js in it. It belongs to the build; [NewParser] takes the
// result at run time.
func BuildImage(mod *engine.Module, acorn string) (*engine.Image, error) {
	vm, err := mod.New(engine.Config{FixedClock: buildTime})
	if err != nil {
		return nil, err
	}
	defer vm.Close()
	if err := vm.FindSeed(); err != nil {
		return nil, err
	}
	analyze, err := loadParser(vm, acorn)
	if err != nil {
		return nil, err
	}
	vm.SetRoot(analyze)
	// One round with each kind of syntax: what acorn makes on first use is in the image then.
	p := &Parser{vm: vm}
	if _, err := p.analyze(context.Background(), warmUp, true); err != nil {
		return nil, fmt.Errorf("warming up the parser: %w", err)
	}
	if err := vm.SealBase(); err != nil {
		return nil, err
	}
	return vm.Image(nil)
}

// loadParser evaluates acorn and our two files and gives the function that analyzes.
func loadParser(vm *engine.VM, acorn string) (engine.Value, error) {
	if _, err := vm.Eval(acorn, "acorn.js", engine.Script); err != nil {
		return 0, fmt.Errorf("evaluating acorn: %w", err)
	}
	lib, err := vm.Get(vm.Global(), "acorn")
	if err != nil {
		return 0, err
	}
	args := []engine.Value{lib}
	for _, file := range []struct{ name, text string }{{"faster.js", fasterJS}, {"analyze.js", analyzeJS}} {
		f, err := vm.Eval(file.text, file.name, engine.Script)
		if err == nil {
			f, err = vm.Call(f, args...)
		}
		if err != nil {
			return 0, fmt.Errorf("evaluating %s: %w", file.name, err)
		}
		args = append(args, f)
	}
	return args[len(args)-1], nil
}

const warmUp = `"use strict"; const a = [1, ...x], {b, c: [d] = []} = await f(); let r = /a[b]+(?<n>c)/gu.test(` + "`t${1}`" + `);
async function* g(p = 1, ...q) { for await (const v of p) yield v?.w ?? (u => u + 1)(2n); }
class C extends D { #f = 1; static { super.x; } get m() { return new.target } }
try { if (a) throw new E("\u0061"); else while (b) { break } } catch { switch (c) { case 1: default: } } finally { for (var i = 0; i < 9; i++); }
import.meta; require("x")`

// Parser reads the source of cells with acorn, in a VM of its own: never in the guest's.
// It is not safe for concurrent use; its owner closes it.
type Parser struct {
	vm        *engine.VM
	ctx       context.Context // of the call under way, for interrupt
	deadline  time.Time
	transform transformFunc
}

// NewParser makes a parser from the image that [BuildImage] made with the same engine.
func NewParser(mod *engine.Module, image *engine.Image) (*Parser, error) {
	p := &Parser{ctx: context.Background(), transform: esbuildTransform}
	vm, err := mod.Restore(engine.Config{Interrupt: p.interrupt}, image)
	if err != nil {
		return nil, fmt.Errorf("starting the parser: %w", err)
	}
	if err := vm.SetMemoryLimit(MaxParserMemory); err != nil {
		vm.Close()
		return nil, err
	}
	p.vm = vm
	return p, nil
}

// Warm parses something small: what a first parse touches is then in memory. It takes about
// two milliseconds, which a worker has while nobody needs it.
func (p *Parser) Warm() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = p.Prepare(ctx, Input{Source: "const a = await f({b: [1]}); a.b + `c`"}) // what is wrong the cell will find out
}

// Close frees the parser's VM. It may be called twice.
func (p *Parser) Close() error { return p.vm.Close() }

// interrupt looks at the clock itself: no timer of Go's fires while wasm code runs on
// the only free processor.
func (p *Parser) interrupt() bool {
	return p.ctx.Err() != nil || !p.deadline.IsZero() && time.Now().After(p.deadline)
}

// facts are what analyze.js found; positions are in UTF-16 units.
type facts struct {
	Form   Form     `json:"form"`
	Edits  []edit16 `json:"edits"`
	Breaks []int    `json:"breaks"`
	Bare   bool     `json:"bare"`

	Module        *finding `json:"module"`        // scan only
	ExportDefault bool     `json:"exportDefault"` // scan only

	Error *finding `json:"error"`
}

// finding is something refused at a place.
type finding struct {
	Kind    string `json:"kind"` // "syntax", "module", "deep"
	Message string `json:"message"`
	Pos     int    `json:"pos"`
}

// edit16 replaces some of the source.
type edit16 struct {
	At     int    `json:"at"`
	Remove int    `json:"remove"`
	Insert string `json:"insert"`
}

// analyze parses JavaScript. wantBare asks whether it is words and operators only.
func (p *Parser) analyze(ctx context.Context, source string, wantBare bool) (*facts, error) {
	return p.call(ctx, "analyze", source, wantBare)
}

// scan looks at the tokens of what may be TypeScript.
func (p *Parser) scan(ctx context.Context, source string) (*facts, error) {
	return p.call(ctx, "scan", source, false)
}

func (p *Parser) call(ctx context.Context, what, source string, flag bool) (*facts, error) {
	p.ctx = ctx
	p.deadline, _ = ctx.Deadline()
	op, err := p.vm.NewString(what)
	if err != nil {
		return nil, err
	}
	defer p.vm.Free(op)
	src, err := p.vm.NewString(source)
	if err != nil {
		return nil, err
	}
	defer p.vm.Free(src)
	raw, wide := units16(source)
	bytes, err := p.vm.NewBytes(raw)
	if err != nil {
		return nil, err
	}
	defer p.vm.Free(bytes)
	r, err := p.vm.Call(p.vm.Root(), op, src, bytes, p.vm.Bool(wide), p.vm.Bool(flag))
	if err != nil {
		return nil, err
	}
	defer p.vm.Free(r)
	text, err := p.vm.String(r)
	if err != nil {
		return nil, err
	}
	f := new(facts)
	if err := json.Unmarshal([]byte(text), f); err != nil {
		return nil, fmt.Errorf("reading what the parser found: %w", err)
	}
	return f, nil
}

// units16 gives the UTF-16 units of a source, little-endian as wasm is, or its bytes if
// they are all ASCII.
func units16(source string) (b []byte, wide bool) {
	for i := range len(source) {
		if source[i] >= utf8.RuneSelf {
			wide = true
			break
		}
	}
	if !wide {
		return []byte(source), false
	}
	b = make([]byte, 0, 2*len(source))
	for _, r := range source {
		if hi, lo := utf16.EncodeRune(r); hi != utf8.RuneError {
			b = binary.LittleEndian.AppendUint16(b, uint16(hi))
			r = lo
		}
		b = binary.LittleEndian.AppendUint16(b, uint16(r))
	}
	return b, true
}
