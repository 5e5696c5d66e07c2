package snapshot_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/openclaw/codemode-supervisor/snapshot"
)

// A run is parked, its process ends, and the next one goes on with it.
func Example() {
	temp, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(temp)
	dir := filepath.Join(temp, "state")

	store, err := snapshot.OpenDisk(snapshot.DiskOptions{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	now := time.Now()
	run := snapshot.Meta{
		ID:      "q3Zk81xT",
		Owner:   snapshot.Owner{AgentID: "main", SessionID: "s1"},
		State:   snapshot.Waiting,
		Engine:  "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		Created: now, Parked: now, Expires: now.Add(15 * time.Minute), TTL: 15 * time.Minute,
	}
	if err := store.Save(run, []byte("1 call is open"), []byte("the VM's memory")); err != nil {
		log.Fatal(err)
	}
	if err := store.Append(run.ID, []byte("the call gave 42")); err != nil {
		log.Fatal(err)
	}
	store.Close()

	store, err = snapshot.OpenDisk(snapshot.DiskOptions{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	saved, err := store.Claim(run.ID)
	if err != nil {
		log.Fatal(err)
	}
	image, err := store.Image(run.ID, run.Engine)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(saved.Meta.Owner.Allows(snapshot.Owner{AgentID: "other"}))
	fmt.Printf("%s; %s; %s\n", saved.Record, saved.Log[0], image)
	// Output:
	// false
	// 1 call is open; the call gave 42; the VM's memory
}
