package workerproto

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/metrics"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vmihailenco/msgpack/v5"
)

// FuzzReadEvent is the supervisor's reader against a worker that sends anything.
func FuzzReadEvent(f *testing.F) {
	seed(f, true)
	f.Fuzz(func(t *testing.T, stream []byte) { readAll(t, stream, (*Conn).ReadEvent) })
}

// FuzzReadCommand is the worker's reader. It is the same decoder with other types.
func FuzzReadCommand(f *testing.F) {
	seed(f, false)
	f.Fuzz(func(t *testing.T, stream []byte) { readAll(t, stream, (*Conn).ReadCommand) })
}

// seed adds a frame of each message and every conformance case. The corpus under
// testdata/fuzz has what the fuzzers and people found.
func seed(f *testing.F, event bool) {
	for _, s := range seeds(f, event) {
		f.Add(s)
	}
}

func seeds(t testing.TB, event bool) (streams [][]byte) {
	for _, m := range samples {
		if kinds[m.Type()].event == event {
			streams = append(streams, frameOf(t, m))
		}
	}
	for _, c := range conformanceCases(t) {
		if c.event == event {
			streams = append(streams, c.stream)
		}
	}
	return streams
}

// A fuzzer that begins with nothing finds nothing, and says so to nobody.
func TestFuzzersHaveSeeds(t *testing.T) {
	for name, event := range map[string]bool{"FuzzReadEvent": true, "FuzzReadCommand": false} {
		files, err := filepath.Glob(filepath.Join("testdata", "fuzz", name, "*"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no committed corpus (%v)", name, err)
		}
		for _, file := range files {
			if text, err := os.ReadFile(file); err != nil || !bytes.HasPrefix(text, []byte("go test fuzz v1\n")) {
				t.Errorf("%s is no corpus file (%v)", file, err)
			}
		}
		read := map[Type]bool{}
		for _, s := range seeds(t, event) {
			if len(s) > 3 {
				read[Type(s[3])] = true
			}
		}
		for typ, k := range kinds {
			if k.event == event && !read[typ] {
				t.Errorf("%s has no seed of a %s", name, typ)
			}
		}
	}
}

// readAll reads a stream to its end and checks what holds for every stream there is.
func readAll(t *testing.T, stream []byte, read func(*Conn) (Message, error)) {
	var messages []Message
	var err error
	toEnd := func() {
		c := over(stream)
		for messages, err = nil, nil; err == nil; {
			var m Message
			if m, err = read(c); err == nil {
				messages = append(messages, m)
			}
		}
	}
	before := heapAllocs()
	toEnd()
	// A buffer for the Conn and one for each body, which doubles as it comes; text is
	// copied. The cheap figure also has what earlier runs took and the runtime had not
	// counted yet, so it only raises the suspicion.
	most := uint64((len(messages)+2)*(firstRead+8<<10) + 8*len(stream))
	if heapAllocs()-before > most {
		if got := allocated(toEnd); got > most {
			t.Errorf("a stream of %d bytes cost %d bytes of memory, want at most %d", len(stream), got, most)
		}
	}
	var v *Violation
	if !errors.As(err, &v) && err != io.EOF && err != io.ErrUnexpectedEOF {
		t.Errorf("the stream ended with %v, which is none of the errors that are promised", err)
	}
	for _, m := range messages {
		frame, err := Append(nil, m)
		if err != nil {
			t.Fatalf("%+v was read and cannot be written: %v", m, err)
		}
		again, err := read(over(frame))
		if err != nil {
			t.Fatalf("%+v was read and written, and cannot be read again: %v", m, err)
		}
		if diff := cmp.Diff(m, again); diff != "" {
			t.Errorf("read, written and read again (-first +second):\n%s", diff)
		}
		theirs := kinds[m.Type()].new()
		if err := msgpack.Unmarshal(frame[headerBytes:], theirs); err != nil {
			t.Fatalf("the library does not read %+v: %v", m, err)
		}
		// It tells empty bytes from nil.
		if diff := cmp.Diff(m, theirs, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the library reads something else (-ours +theirs):\n%s", diff)
		}
	}
}

// heapAllocs is cheaper than runtime.ReadMemStats, which stops the world.
func heapAllocs() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
