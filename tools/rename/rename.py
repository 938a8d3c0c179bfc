"""Apply the table of renames to a checkout, with mypy's own resolution of names: rename.py CHECKOUT table.csv"""
import ast, csv, re, sys
from collections import defaultdict
from pathlib import Path
from mypy import build, nodes, types as T
from mypy.modulefinder import BuildSource
from mypy.options import Options
from mypy.types import get_proper_type

clone=Path(sys.argv[1]).resolve(); tables=sys.argv[2:]
SRC=clone/"src"
FILES=[p for d in ("src/recollect","tests","reproductions","benchmarks","examples") for p in sorted((clone/d).rglob("*.py")) if "/runs/" not in str(p)]
def modname(p):
    rel=p.relative_to(clone)
    if rel.parts[0]=="src":
        parts=list(rel.parts[1:]); parts[-1]=parts[-1][:-3]
        if parts[-1]=="__init__": parts.pop()
        return ".".join(parts)
    return "x_"+re.sub(r"\W","_",str(rel)[:-3])
MODULES={modname(p):p for p in FILES}
G={}; M={}; L=defaultdict(dict); MOD={}; FROZEN=set()
for t in tables:
    for row in csv.DictReader(open(t)):
        k,loc,old,new=row["kind"].strip(),row["location"].strip(),row["old"].strip(),row["new"].strip()
        if k=="frozen" or old==new or not new: continue
        loc=loc.replace("src/","").replace("/",".").removesuffix(".py") if "/" in loc else loc
        if k=="module":
            full=loc if loc.endswith("."+old) else f"{loc}.{old}"
            MOD[full]=full[:-len(old)]+new; continue
        mod,_,qual=loc.partition(":")
        if not qual: G[f"{mod}.{old}"]=new
        elif k in("method","field","class","function") : M[f"{mod}.{qual}.{old}"]=new
        else:
            L[mod][(qual,old)]=new
print(len(G),"globals",len(M),"members",sum(map(len,L.values())),"locals",len(MOD),"modules")
o=Options(); o.incremental=False; o.export_types=True; o.preserve_asts=True; o.check_untyped_defs=True; o.ignore_missing_imports=True; o.follow_imports="skip"; o.mypy_path=[str(SRC)]; o.python_version=(3,11); o.show_traceback=False; o.semantic_analysis_only=False
o.allow_redefinition=False; o.namespace_packages=True
import os; os.chdir(clone)
res=build.build([BuildSource(str(p),m,None) for m,p in MODULES.items()],options=o)
print("built",len(res.files), "errors",len(res.errors))
TYPES=res.types
edits=defaultdict(dict)   # path -> {(line,col): (old,new)}
ambiguous=defaultdict(set)
# attributes defined by src classes that are not renamed
defined=defaultdict(set)
for m in res.files.values():
    if not m.fullname.startswith("recollect"): continue
    for n in ast.walk(ast.parse(MODULES[m.fullname].read_text())) if m.fullname in MODULES else ():
        if isinstance(n,ast.ClassDef):
            for b in n.body:
                if isinstance(b,(ast.FunctionDef,ast.AsyncFunctionDef)): defined[b.name].add(f"{m.fullname}.{n.name}.{b.name}")
                elif isinstance(b,ast.AnnAssign) and isinstance(b.target,ast.Name): defined[b.target.id].add(f"{m.fullname}.{n.name}.{b.target.id}")
                elif isinstance(b,ast.Assign):
                    for t in b.targets:
                        if isinstance(t,ast.Name): defined[t.id].add(f"{m.fullname}.{n.name}.{t.id}")
def member_of(t,name,seen=None):
    t=get_proper_type(t)
    out=set()
    if t is None: return out
    if isinstance(t,T.UnionType):
        for i in t.items: out|=member_of(i,name)
        return out
    if isinstance(t,T.TypeVarType): return member_of(t.upper_bound,name)
    if isinstance(t,T.TupleType): return member_of(t.partial_fallback,name)
    if isinstance(t,T.TypeType): return member_of(t.item,name)
    if isinstance(t,T.Overloaded): t=t.items[0]
    if isinstance(t,T.CallableType):
        if t.is_type_obj(): return member_of(t.ret_type,name)
        return out
    if isinstance(t,T.Instance):
        for info in t.type.mro:
            if name in info.names: return {f"{info.fullname}.{name}"}
    return out
def newmember(t,name):
    fulls=member_of(t,name)
    return {M.get(f) for f in fulls} if fulls else None

SKIP={"node","info","type","unanalyzed_type","names","original_def","var","def_var","analyzed","id","alias_deps","plugin_deps","imports","path","ignored_lines","future_import_flags","_fullname","fullname","dataclass_transform_spec","deco_line","type_args","local_definitions","is_cache_skeleton"}
ATTRS={}
def attrs(cls):
    if cls not in ATTRS:
        found=[]
        for c in cls.__mro__:
            for a in getattr(c,"__mypyc_attrs__",()) or ():
                if a not in SKIP and a not in found: found.append(a)
        ATTRS[cls]=found
    return ATTRS[cls]
class V:
    def __init__(self,mod,path): self.mod=mod; self.path=path; self.stack=[]; self.seen=set()
    def add(self,line,col,old,new): edits[self.path][(line,col)]=(old,new)
    def local(self,name):
        table=L.get(self.mod)
        if not table: return None
        for i in range(len(self.stack),0,-1):
            for j in range(0,i):
                new=table.get((".".join(self.stack[j:i]),name))
                if new: return new
        return None
    def visit(self,n):
        if isinstance(n,(list,tuple)):
            for x in n: self.visit(x)
            return
        if not isinstance(n,nodes.Node) or isinstance(n,(nodes.TypeInfo,nodes.SymbolTable)) or id(n) in self.seen: return
        self.seen.add(id(n))
        push=isinstance(n,(nodes.FuncDef,nodes.ClassDef))
        if push: self.stack.append(n.name)
        if isinstance(n,nodes.NameExpr): self.name_expr(n)
        elif isinstance(n,nodes.MemberExpr): self.member_expr(n)
        elif isinstance(n,nodes.CallExpr): CALLS[(self.path,n.line,n.column,n.end_line,n.end_column)]=n
        for a in attrs(type(n)):
            try: v=getattr(n,a)
            except AttributeError: continue
            if isinstance(v,(list,tuple,nodes.Node)): self.visit(v)
        if push: self.stack.pop()
    def name_expr(self,n):
        full=n.fullname or ""
        if full in G and full.rsplit(".",1)[1]==n.name: self.add(n.line,n.column,n.name,G[full])
        elif full in M and full.rsplit(".",1)[1]==n.name: self.add(n.line,n.column,n.name,M[full])
        elif n.kind==nodes.LDEF or not full or "." not in full or isinstance(n.node,nodes.Var) and not full.startswith("recollect"):
            new=self.local(n.name)
            if new: self.add(n.line,n.column,n.name,new)
    def member_expr(self,n):
        new=None; full=n.fullname or ""
        if full in G: new=G[full]
        elif full in M: new=M[full]
        else:
            t=TYPES.get(n.expr)
            got=newmember(t,n.name) if t is not None else None
            if got is not None:
                got.discard(None) if len(got)>1 else None
                if len(got)==1: new=next(iter(got))
                elif len(got)>1: ambiguous[n.name].add(f"{self.path}:{n.line}")
            elif n.name in MEMBER_NEW and not (isinstance(n.expr,nodes.RefExpr) and isinstance(n.expr.node,nodes.MypyFile)) and (t is None or (isinstance(get_proper_type(t),T.AnyType) and (not self.mod.startswith('recollect') or (isinstance(n.expr,nodes.MemberExpr) and isinstance(n.expr.expr,nodes.NameExpr) and n.expr.expr.name=='self')))) and not (isinstance(n.expr,nodes.NameExpr) and n.expr.name in IMPORTED.get(self.path,())):
                cands=MEMBER_NEW[n.name]
                if len(cands)==1 and not NOT_RENAMED[n.name]: new=next(iter(cands))
                else: ambiguous[n.name].add(f"{self.path.relative_to(clone)}:{n.line}")
        if new and n.end_line is not None:
            # the attribute ends where the expression ends
            self.add(n.end_line,n.end_column-len(n.name),n.name,new)
IMPORTED={}
for _p in FILES:
    IMPORTED[_p]={(a.asname or a.name).split('.')[0] for n in ast.walk(ast.parse(_p.read_text())) if isinstance(n,ast.Import) for a in n.names}
MEMBER_NEW=defaultdict(set)
for f,new in M.items(): MEMBER_NEW[f.rsplit(".",1)[1]].add(new)
NOT_RENAMED={name:{d for d in defined.get(name,()) if d not in M} for name in MEMBER_NEW}
CALLS={}
for mod,path in MODULES.items():
    tree=res.files.get(mod)
    if tree is None: print("no tree",mod); continue
    V(mod,path).visit(tree.defs)
def resolve(mod,name):
    f=res.files.get(mod)
    if f and name in f.names:
        s=f.names[name]
        return (s.node.fullname if s.node is not None else None)
    return None
def src_lines(path): return path.read_text().splitlines(keepends=True)
for mod,path in MODULES.items():
    text=path.read_text(); tree=ast.parse(text); lines=text.splitlines()
    def add(line,col,old,new):
        edits[path][(line,len(lines[line-1].encode()[:col].decode()))]=(old,new)
    def name_at(line,old,kw):
        m=re.search(kw+r"\s+("+re.escape(old)+r")\b",lines[line-1]); return m.start(1) if m else None
    def walk(node,stack):
        for n in ast.iter_child_nodes(node):
            if isinstance(n,(ast.FunctionDef,ast.AsyncFunctionDef,ast.ClassDef)):
                qual=".".join([*stack,n.name]); full=f"{mod}.{qual}"
                new=G.get(full) or M.get(full)
                if not new and L.get(mod): # nested function listed as variable/function local
                    new=None
                if new:
                    kw="class" if isinstance(n,ast.ClassDef) else "def"
                    c=name_at(n.lineno,n.name,kw)
                    if c is not None: edits[path][(n.lineno,c)]=(n.name,new)
                if not isinstance(n,ast.ClassDef):
                    a=n.args
                    for arg in [*a.posonlyargs,*a.args,*a.kwonlyargs,*( [a.vararg] if a.vararg else []),*([a.kwarg] if a.kwarg else [])]:
                        for i in range(len(stack)+1):
                            new=L.get(mod,{}).get((".".join([*stack,n.name][i:]),arg.arg))
                            if new: add(arg.lineno,arg.col_offset,arg.arg,new); break
                walk(n,[*stack,n.name])
            elif isinstance(n,ast.AnnAssign) and isinstance(n.target,ast.Name) and isinstance(node,ast.ClassDef):
                new=M.get(f"{mod}.{'.'.join(stack)}.{n.target.id}")
                if new: add(n.target.lineno,n.target.col_offset,n.target.id,new)
                walk(n,stack)
            elif isinstance(n,ast.Assign) and isinstance(node,ast.ClassDef):
                for t in n.targets:
                    if isinstance(t,ast.Name):
                        new=M.get(f"{mod}.{'.'.join(stack)}.{t.id}")
                        if new: add(t.lineno,t.col_offset,t.id,new)
                walk(n,stack)
            elif isinstance(n,ast.ImportFrom):
                base=n.module or ""
                if n.level:
                    base=".".join(mod.split(".")[:-n.level]+([n.module] if n.module else []))
                for al in n.names:
                    full=resolve(base,al.name) or f"{base}.{al.name}"
                    new=None
                    if f"{base}.{al.name}" in MOD: new=MOD[f"{base}.{al.name}"].rsplit(".",1)[1]
                    elif full in G and full.rsplit(".",1)[1]==al.name: new=G[full]
                    if new: add(al.lineno,al.col_offset,al.name,new)
            elif isinstance(n,ast.Call):
                c=CALLS.get((path,n.lineno,len(lines[n.lineno-1].encode()[:n.col_offset].decode()),n.end_lineno,len(lines[n.end_lineno-1].encode()[:n.end_col_offset].decode())))
                if c is not None:
                    callee=c.callee; t=get_proper_type(TYPES.get(callee)) if TYPES.get(callee) is not None else None
                    fulls=[]
                    if isinstance(callee,nodes.RefExpr) and callee.fullname: fulls.append(callee.fullname)
                    if isinstance(callee,nodes.MemberExpr) and TYPES.get(callee.expr) is not None: fulls+=list(member_of(TYPES[callee.expr],callee.name))
                    cls=None
                    if isinstance(t,T.CallableType) and t.is_type_obj(): 
                        r=get_proper_type(t.ret_type); cls=r if isinstance(r,(T.Instance,T.TupleType)) else None
                    elif isinstance(t,T.TypeType): cls=t.item
                    fname=callee.name if isinstance(callee,(nodes.NameExpr,nodes.MemberExpr)) else ""
                    if fname in("replace","evolve") and c.args and TYPES.get(c.args[0]) is not None: cls=TYPES[c.args[0]]
                    if fname in("getattr","setattr","hasattr","delattr","object") and len(n.args)>1 and isinstance(n.args[1],ast.Constant) and isinstance(n.args[1].value,str):
                        nm=n.args[1].value; at=TYPES.get(c.args[0]); new=None
                        if isinstance(c.args[0],nodes.RefExpr) and isinstance(c.args[0].node,nodes.MypyFile):
                            full=resolve(c.args[0].node.fullname,nm) or f"{c.args[0].node.fullname}.{nm}"; new=G.get(full)
                        elif at is not None:
                            got=newmember(at,nm); new=next(iter(got)) if got and len(got)==1 else None
                        if new: add(n.args[1].lineno,n.args[1].col_offset+1,nm,new)
                    for kw in n.keywords:
                        if kw.arg is None: continue
                        new=None
                        if cls is not None:
                            got=newmember(cls,kw.arg)
                            if got and len(got)==1: new=next(iter(got))
                            elif isinstance(get_proper_type(cls),T.Instance):
                                q=get_proper_type(cls).type.fullname
                                for info in get_proper_type(cls).type.mro:
                                    m2,_,c2=info.fullname.rpartition(".")
                                    new=new or L.get(m2,{}).get((f"{c2}.__init__",kw.arg))
                        if not new:
                            for f in fulls:
                                for k in range(1,4):
                                    parts=f.split("."); m2,q2=".".join(parts[:-k]),".".join(parts[-k:])
                                    if m2 in L and (q2,kw.arg) in L[m2]: new=L[m2][(q2,kw.arg)]
                        if new: add(kw.lineno,kw.col_offset,kw.arg,new)
                walk(n,stack)
            elif isinstance(n,(ast.Assign,ast.AnnAssign)) and isinstance(node,ast.Module) and any(isinstance(t,ast.Name) and t.id=="__all__" for t in (n.targets if isinstance(n,ast.Assign) else [n.target])):
                for c in ast.walk(n.value) if n.value else ():
                    if isinstance(c,ast.Constant) and isinstance(c.value,str):
                        full=resolve(mod,c.value) or f"{mod}.{c.value}"
                        if full in G and full.rsplit(".",1)[1]==c.value: add(c.lineno,c.col_offset+1,c.value,G[full])
            else: walk(n,stack)
    walk(tree,[])
    modnames={}
    for n in ast.walk(tree):
        if isinstance(n,ast.ImportFrom):
            for al in n.names:
                f=f"{n.module}.{al.name}"
                if f in MOD and al.asname is None: modnames[al.name]=MOD[f].rsplit(".",1)[1]
    def bound(fn):
        a=fn.args; names={x.arg for x in [*a.posonlyargs,*a.args,*a.kwonlyargs,*([a.vararg] if a.vararg else []),*([a.kwarg] if a.kwarg else [])]}
        body=fn.body if isinstance(fn.body,list) else [fn.body]
        for st in body:
            for x in ast.walk(st):
                if isinstance(x,ast.Name) and isinstance(x.ctx,ast.Store): names.add(x.id)
        return names
    class_targets={id(t) for c in ast.walk(tree) if isinstance(c,ast.ClassDef) for b in c.body for t in ([b.target] if isinstance(b,ast.AnnAssign) else b.targets if isinstance(b,ast.Assign) else [])}
    for c in ast.walk(tree):
        if isinstance(c,ast.Call) and isinstance(c.func,ast.Name) and c.func.id=='TypeVar' and c.args and isinstance(c.args[0],ast.Constant):
            f=f'{mod}.{c.args[0].value}'
            if f in G: add(c.args[0].lineno,c.args[0].col_offset+1,c.args[0].value,G[f])
    def names_in(node,hidden):
        for n in ast.iter_child_nodes(node):
            if id(n) in class_targets: continue
            h=hidden
            if isinstance(n,(ast.FunctionDef,ast.AsyncFunctionDef,ast.Lambda)): h=hidden|bound(n)
            elif isinstance(n,(ast.ListComp,ast.SetComp,ast.DictComp,ast.GeneratorExp)):
                h=hidden|{x.id for g in n.generators for x in ast.walk(g.target) if isinstance(x,ast.Name)}
            if isinstance(n,ast.Name) and n.id not in hidden:
                full=resolve(mod,n.id); new=None
                if full in G and full.rsplit(".",1)[1]==n.id: new=G[full]
                elif n.id in modnames: new=modnames[n.id]
                if new: add(n.lineno,n.col_offset,n.id,new)
            names_in(n,h)
    names_in(tree,frozenset())
bad=0; count=0
for path,e in edits.items():
    lines=path.read_text().splitlines(keepends=True)
    for (line,col),(old,new) in sorted(e.items(),reverse=True):
        s=lines[line-1]
        if s[col:col+len(old)]!=old and not re.match(re.escape(old)+r'\b',s[col:]):
            # columns inside f-strings may be off: take the one occurrence on the line, if there is just one
            hits=[m.start() for m in re.finditer(r'(?<=\.)%s\b'%re.escape(old),s)] or [m.start() for m in re.finditer(r'(?<![\w\'"-])%s\b'%re.escape(old),s)]
            if hits:
                near=min(hits,key=lambda h:abs(h-col)); print('FALLBACK',path.relative_to(clone),line,old,new,'|',s.strip()[:150]); lines[line-1]=s[:near]+new+s[near+len(old):]; count+=1
                continue
        if s[col:col+len(old)]!=old:
            bad+=1
            if bad<30: print("MISMATCH",path.relative_to(clone),line,col,repr(s[col:col+20]),old,new)
            continue
        # f-string pieces and everything else alike
        lines[line-1]=s[:col]+new+s[col+len(old):]; count+=1
    path.write_text("".join(lines))
print(count,"edits",bad,"mismatches")
# docstrings: doctests and backticked names of the same module
def in_module(mod):
    names={}
    for f,new in G.items():
        if f.rsplit(".",1)[0]==mod: names[f.rsplit(".",1)[1]]=new
    for f,new in M.items():
        if f.startswith(mod+".") : names.setdefault(f.rsplit(".",1)[1],new)
    for (q,oldn),new in L.get(mod,{}).items(): names.setdefault(oldn,new)
    return names
for mod,path in MODULES.items():
    if not mod.startswith("recollect"): continue
    names=in_module(mod)
    if not names: continue
    text=path.read_text(); out=[]
    for line in text.splitlines(keepends=True):
        st=line.lstrip()
        if st.startswith((">>> ","... ")):
            for a,b in names.items():
                if f"{mod}.{a}" in G: line=re.sub(r"(?<![\w.'\"])%s\b(?=\()"%re.escape(a),b,line)
                else: line=re.sub(r"(?<=\.)%s\b"%re.escape(a),b,line)
        line=re.sub(r"`(_?\w+)`",lambda m:f"`{names.get(m[1],m[1])}`" ,line)
        # Args: sections name parameters
        m=re.match(r"(\s+)(\w+)(: .*)",line)
        out.append(line)
    path.write_text("".join(out))
# Args sections of docstrings: per function
for mod in L:
    path=MODULES.get(mod)
    if not path: continue
    tree=ast.parse(path.read_text()); lines=path.read_text().splitlines(keepends=True)
    def docs(node,stack):
        for n in ast.iter_child_nodes(node):
            if isinstance(n,(ast.FunctionDef,ast.AsyncFunctionDef,ast.ClassDef)):
                q=[*stack,n.name]
                inv={v:k for k,v in {**{f.rsplit('.',1)[1]:new for f,new in G.items() if f.startswith(mod+'.')},**{f[len(mod)+1:].split('.')[-1]:new for f,new in M.items() if f.startswith(mod+'.')}}.items()}
                oldq=".".join(inv.get(x,x) for x in q)
                if not isinstance(n,ast.ClassDef) and n.body and isinstance(n.body[0],ast.Expr) and isinstance(n.body[0].value,ast.Constant):
                    for (qual,oldn),new in L[mod].items():
                        if qual==oldq or qual==".".join(q) or oldq.endswith("."+qual):
                            for i in range(n.body[0].lineno-1,n.body[0].end_lineno):
                                lines[i]=re.sub(r"^(\s+)%s(?=: )"%re.escape(oldn),r"\g<1>"+new,lines[i])
                docs(n,q)
            else: docs(n,stack)
    docs(tree,[]); path.write_text("".join(lines))
# dotted references everywhere, longest first
dotted={**{f:f.rsplit(".",1)[0]+"."+n for f,n in G.items()},**{f:f.rsplit(".",1)[0]+"."+n for f,n in M.items()}}
TEXT=[p for d in ("src","tests","reproductions","benchmarks","examples","docs") for p in (clone/d).rglob("*") if p.suffix in(".py",".md",".toml",".yaml",".yml",".txt",".ipynb") and "/runs/" not in str(p)]+[clone/n for n in ("README.md","pyproject.toml","mkdocs.yml","CONTRIBUTING.md","CHANGELOG.md")]
pat=re.compile(r"recollect(?:\.\w+)+(?::\w+)?") 
def fix(m):
    s=m[0]; colon=":" in s; s2=s.replace(":",".")
    best=None
    parts=s2.split(".")
    for k in range(len(parts),1,-1):
        pre=".".join(parts[:k])
        if pre in dotted: parts=dotted[pre].split(".")+parts[k:]; break
    s3=".".join(parts)
    for old in sorted(MOD,key=len,reverse=True):
        if s3==old or s3.startswith(old+"."): s3=MOD[old]+s3[len(old):]; break
    if colon:
        n=len(s.split(":")[0].split(".")); q=s3.split("."); s3=".".join(q[:n])+":"+".".join(q[n:])
    return s3
for p in TEXT:
    t=p.read_text(); n=pat.sub(fix,t)
    if n!=t: p.write_text(n)
import subprocess
for old,new in MOD.items():
    a=SRC/Path(old.replace(".","/")); b=SRC/Path(new.replace(".","/"))
    if (a.with_suffix(".py")).exists(): subprocess.run(["git","mv",str(a.with_suffix(".py")),str(b.with_suffix(".py"))],check=True,cwd=clone)
    elif a.is_dir(): subprocess.run(["git","mv",str(a),str(b)],check=True,cwd=clone)
    else: print("NO MODULE",old); continue
    on,nn=old.rsplit(".",1)[1],new.rsplit(".",1)[1]
    for t in (clone/"tests").rglob(f"test_{on}.py"):
        if not t.with_name(f"test_{nn}.py").exists(): subprocess.run(["git","mv",str(t),str(t.with_name(f"test_{nn}.py"))],cwd=clone)
for k,v in sorted(ambiguous.items()): print("AMBIGUOUS",k,sorted(MEMBER_NEW.get(k,())),sorted(NOT_RENAMED.get(k,()))[:3],len(v),sorted(map(str,v))[:4])
