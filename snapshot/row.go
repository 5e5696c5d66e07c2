package snapshot

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// A row is what the database has of a run in plain text. It decides who owns the run, so
// it carries an HMAC; and it pins the sealed texts that belong to it, so that an older
// image or log of the same run does not pass for the present one.
type row struct {
	Meta
	Instance string `json:"instance,omitempty"` // who holds it
	Image    string `json:"image,omitempty"`    // file name
	Sum      []byte `json:"sum,omitempty"`      // chain over the salts of record and log entries
}

// maxMeta bounds a row, in bytes.
const maxMeta = 64 << 10

const rowInfo = "codemode snapshot row 1"

// encodeRow gives a row as it is written: the HMAC, and the JSON text that it is over. So
// what is believed does not depend on how else that text could be read.
func encodeRow(key []byte, r *row) ([]byte, error) {
	text, err := json.Marshal(r)
	if err == nil && len(text) > maxMeta-sha256.Size {
		err = fmt.Errorf("its owner and times take %d bytes, and %d is the most", len(text), maxMeta-sha256.Size)
	}
	if err != nil {
		return nil, fmt.Errorf("saving run %q: %w", r.ID, err)
	}
	return append(mac(key, text), text...), nil
}

// decodeRow reads the row of a run. A row that is not authentic is given as far as it can
// be read, with Broken set.
func decodeRow(key []byte, id string, signed []byte) (r row, err error) {
	if sha256.Size <= len(signed) && len(signed) <= maxMeta {
		sum, text := signed[:sha256.Size], signed[sha256.Size:]
		authentic := hmac.Equal(sum, mac(key, text))
		if json.Unmarshal(text, &r) != nil {
			r = row{}
		} else if authentic && r.ID == id {
			return r, nil
		}
	}
	r.ID, r.Broken, r.Held, r.Holder, r.Bytes = id, true, false, 0, 0
	return r, fmt.Errorf("run %q: %w", id, ErrBroken)
}

func mac(key, text []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(text)
	return h.Sum(nil)
}

// link adds a sealed text to a chain. A salt stands for its container: no other opens with
// the key that comes from it.
func link(sum, sealed []byte) []byte {
	h := sha256.New()
	h.Write(sum)
	h.Write(salt(sealed))
	return h.Sum(nil)
}

const imageSuffix = ".snap"

// imageName is the name of the file with a run's sealed image. It has half of the salt in
// it, so the row that names the file also says which container must be in there.
func imageName(id string, sealed []byte) string {
	return id + "." + hex.EncodeToString(salt(sealed)[:16]) + imageSuffix
}

// isImageName tells whether imageName could have made a name.
func isImageName(name string) bool {
	id, rest, _ := strings.Cut(name, ".") // no id has a dot
	salt, ok := strings.CutSuffix(rest, imageSuffix)
	return ok && validID(id) && validName(salt)
}

// imageFile is the file with the run's image; "" if there is none. What a broken row names
// counts only if it could be of this run, since the file will be removed.
func (r *row) imageFile() string {
	if strings.HasPrefix(r.Image, r.ID+".") && isImageName(r.Image) {
		return r.Image
	}
	return ""
}
