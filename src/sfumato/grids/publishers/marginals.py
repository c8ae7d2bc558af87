"""draft"""

from __future__ import annotations

from functools import partial

import numpy as np

from sfumato.grids.graphical import Marginal, fit
from sfumato.grids.publishers import choosing
from sfumato.grids.publishers.base import noise_of
from sfumato.grids.publishers.choosing import Chooser, as_marginals, forest, refined
from sfumato.grids.search.groups import groups_of
from sfumato.grids.search.pairs import pairs_of
from sfumato.records.records import weighted_bincount

P = dict(ones=.35, select=.15, later=0., R2=14, batches=2, theta=3.)

def normsub(x,total):
    x=np.asarray(x,float)
    s=np.sort(x)[::-1]; c=(np.cumsum(s)-total)/np.arange(1,s.size+1); k=np.flatnonzero(s-c>0)[-1]
    return np.maximum(x-c[k],0)

def release(records, levels, meter, unit, rows=None, weights=(1,), **kw):
    p = {**P, **kw}
    for k in ('DAMPING','TYPICAL','MOST_TREE'):
        if k in p: setattr(choosing,k,p[k])
    d = len(levels)
    sq = np.sqrt([l.leaves for l in levels])
    rates = np.maximum(1, (unit * p['ones'] * sq / sq.sum()).astype(int))
    ones = [meter.laplace(records.map(partial(_column_counts, j=j, leaves=levels[j].leaves)), rate=int(rates[j]), weights=weights) for j in range(d)]
    left = unit - int(rates.sum())
    sd = [noise_of(int(r)) for r in rates]
    prec = np.array([1/(levels[j].leaves*sd[j]**2) for j in range(d)])
    total = float(rows) if rows else max(1., float((prec*[o.sum() for o in ones]).sum()/prec.sum()))
    est = [normsub(o,total) for o in ones]
    groups = [groups_of(est[j], levels[j], least=p['theta']*sd[j]) for j in range(d)]
    sizes = [g.count for g in groups]
    om = [Marginal((j,), np.bincount(groups[j].finest, ones[j]), sd[j]*float(np.sqrt(levels[j].leaves/sizes[j]))) for j in range(d)]
    shares = [normsub(m.counts,total)/total for m in om]
    ch = Chooser(records, groups, meter, np.asarray(weights))
    pairs = pairs_of(groups)
    E1 = int(left*(1-p['later'])); E2 = left-E1
    got = forest(ch, pairs, lambda s: total*np.outer(shares[s[0]],shares[s[1]]), E1, p['select'])
    fitted = fit(sizes, om+as_marginals(got,groups), total=total)
    for b in range(p['batches']):
        if p['later']<=0: break
        more, spent = refined(ch, pairs, fitted, [m.columns for m in got], budget=E2//(p['batches']-b), select=p['select'], many=max(1,p['R2']//p['batches']))
        E2 -= spent
        got += more
        if more: fitted=fit(sizes,om+as_marginals(got,groups),total=total,start=fitted)
    return fitted, groups, est, got

def _column_counts(r, j, leaves):
    v = r.classes if j==len(r.taxonomies) else r.leaves[:,j]
    return weighted_bincount(v, r.weights, leaves)

def leaves_from(fitted, groups, est, rows, rng):
    from sfumato.grids.published.sampling import draw_given_class
    G=fitted.sample(rows,rng); out=np.zeros_like(G)
    for j,g in enumerate(groups):
        sh=np.zeros((g.count,len(g.finest))); sh[g.finest,np.arange(len(g.finest))]=est[j]+1e-9
        sh/=sh.sum(1,keepdims=True)
        if g.count==1: out[:,j]=draw_given_class(np.vstack([sh,sh]),np.zeros(rows,int),rng)
        else: out[:,j]=draw_given_class(sh,G[:,j],rng)
    return out
