// Command attacker is a worker that does nothing but one attack, and the parent of such.
//
//	attacker spawn <cases >results   // starts a worker for each case
//	attacker work PLAN NAME          // locks itself by the plan and makes the attack
//
// It is built without cgo, as the worker is: else not all layers can be had. And it can be
// started as another user than the test that asks.

//go:debug updatemaxprocs=0
//go:debug containermaxprocs=0
//go:debug decoratemappings=0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openclaw/codemode-supervisor/limits/attack"
	"github.com/openclaw/codemode-supervisor/limits/isolation"
	"github.com/openclaw/codemode-supervisor/limits/lockdown"
)

// Case is an attack and the layers that are to be on; namespaces may bring that of users along.
type Case struct {
	Layers []isolation.Layer
	Attack string
}

// Result is what came of a case.
type Result struct {
	Outcome string
	Report  isolation.Report
	Err     string
}

func main() {
	log.SetFlags(0)
	if len(os.Args) == 4 && os.Args[1] == "work" {
		work(os.Args[2], os.Args[3])
		return
	}
	var cases []Case
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		log.Fatal(err)
	}
	results := make([]Result, len(cases))
	var wg sync.WaitGroup
	next := make(chan int)
	for range 2 {
		wg.Go(func() {
			runtime.LockOSThread() // a worker's parent must not be a thread that ends
			for i := range next {
				results[i] = spawn(cases[i])
			}
		})
	}
	for i := range cases {
		next <- i
	}
	close(next)
	wg.Wait()
	json.NewEncoder(os.Stdout).Encode(results)
}

// work prints the report, then the outcome.
func work(plan, name string) {
	p, err := lockdown.Decode(plan)
	if err != nil {
		log.Fatal(err)
	}
	report := lockdown.Begin(p, 4).Finish()
	json.NewEncoder(os.Stdout).Encode(report)
	outcome, err := attack.Run(name)
	if err != nil {
		log.Fatal(err)
	}
	os.Stdout.WriteString(outcome + "\n")
	syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
}

// clones are the namespaces that layers are made of.
var clones = map[isolation.Layer]uintptr{
	isolation.UserNamespace:    unix.CLONE_NEWUSER,
	isolation.MountNamespace:   unix.CLONE_NEWNS,
	isolation.EmptyRoot:        unix.CLONE_NEWNS,
	isolation.PIDNamespace:     unix.CLONE_NEWPID,
	isolation.NetworkNamespace: unix.CLONE_NEWNET,
	isolation.IPCNamespace:     unix.CLONE_NEWIPC,
	isolation.UTSNamespace:     unix.CLONE_NEWUTS,
	isolation.CgroupNamespace:  unix.CLONE_NEWCGROUP,
}

func spawn(c Case) (r Result) {
	var host isolation.Report
	attr := &syscall.SysProcAttr{}
	plan := lockdown.Plan{}
	for _, layer := range isolation.Layers() {
		if !slices.Contains(c.Layers, layer) {
			plan.Without = append(plan.Without, layer)
			continue
		}
		attr.Cloneflags |= clones[layer]
		switch layer {
		case isolation.ProcessGroup:
			attr.Setsid = true
			host.On(layer)
		case isolation.EmptyRoot:
			plan.Mount = true
		default:
			if clones[layer] != 0 {
				host.On(layer)
			}
		}
	}
	if attr.Cloneflags != 0 && os.Getuid() != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
	}
	if attr.Cloneflags&unix.CLONE_NEWUSER != 0 {
		host.On(isolation.UserNamespace)
		id := os.Getuid()
		if id == 0 {
			id = 2000000001 // a uid that owns nothing
		}
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
		attr.GidMappings = attr.UidMappings
		if os.Getuid() != 0 {
			attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		}
		attr.Credential = &syscall.Credential{NoSetGroups: true}
		plan.User = true
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return Result{Err: err.Error()}
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close()
	defer theirs.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "work", plan.Encode(), c.Attack)
	cmd.Env = []string{}
	cmd.SysProcAttr = attr
	cmd.ExtraFiles = []*os.File{theirs}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	report, outcome, _ := bytes.Cut(stdout.Bytes(), []byte("\n"))
	if len(report) > 0 {
		if err := json.Unmarshal(report, &r.Report); err != nil {
			r.Err = err.Error()
		}
	}
	r.Report.Merge(host)
	r.Outcome = string(bytes.TrimSpace(outcome))
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() && r.Outcome == "" {
			r.Outcome = unix.SignalName(ws.Signal())
			err = nil
		}
	}
	if err != nil {
		r.Err = fmt.Sprintf("%v: %.300s", err, stderr.String())
	}
	return r
}
