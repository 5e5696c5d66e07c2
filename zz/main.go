package main
import ("context";"fmt";"sort";"time";"github.com/openclaw/codemode-supervisor/supervisor")
func main(){
 s,err:=supervisor.New(supervisor.Options{Worker:"bin/qjs-worker"}); if err!=nil{panic(err)}
 var tot,st,tr,g,rest []float64
 for i:=0;i<40;i++{ t:=time.Now(); r:=s.Exec(context.Background(),supervisor.Program{Code:"1+2"}); d:=float64(time.Since(t).Microseconds())/1000; if r.Status!="completed"{panic(string(r.JSON()))}
  tm:=r.Telemetry.Timings; tot=append(tot,d); st=append(st,tm.Start); tr=append(tr,tm.Transform); g=append(g,tm.Guest); rest=append(rest,d-tm.Start-tm.Transform-tm.Guest) }
 med:=func(x []float64) float64 { sort.Float64s(x); return x[len(x)/2] }
 fmt.Printf("total %.2f start %.2f transform %.2f guest %.2f rest %.2f\n",med(tot),med(st),med(tr),med(g),med(rest))
 s.Close()
}
