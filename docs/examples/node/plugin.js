#!/usr/bin/env -S node --max-semi-space-size=1
// A whole plugin in another language, written from proto/openphone alone: it echoes prompts, counts when a prompt says
// "/count 300", and keeps its conversations in one file. See docs/plugin-author.md for the parts of the contract it uses.
'use strict';
const crypto = require('node:crypto'), fs = require('node:fs'), path = require('node:path');
const { status } = require('@grpc/grpc-js'), { serve, fail } = require('./goplugin.js');

// ---- Errors and answers.
const need = (ok, code = 'params_invalid', status) => { if (!ok) throw fail(code, status); };
const answer = handler => (call, done) => { // a unary call: what the handler returns or throws
  try { done(null, handler(call.request)); } catch (e) { done(e.metadata ? e : fail('internal', status.INTERNAL)); }
};

// ---- The store: conversations by native id, in one file of the data directory.
let file = null, sessions = {};
const save = () => { fs.writeFileSync(file + '.tmp', JSON.stringify(sessions)); fs.renameSync(file + '.tmp', file); };
const nativeId = ref => ref.nativeId || 't-' + crypto.createHash('sha256').update(ref.sessionId).digest('hex').slice(0, 24);
const time = ms => ({ seconds: Math.floor(ms / 1000), nanos: ms % 1000 * 1e6 });
function find(ref) { // undefined: new; what should be there and is not is lost, never started afresh
  need(ref && (ref.sessionId || ref.nativeId) && ref.sessionId.length + ref.nativeId.length < 4096);
  const known = sessions[nativeId(ref)];
  need(known || !ref.nativeId || ref.nativeId === nativeId({ sessionId: ref.sessionId }), 'session_lost', status.NOT_FOUND);
  return known;
}
const row = m => ({ messageId: m.id, role: m.role, parts: [{ text: m.text }], runId: m.run, createdAt: time(m.at) });

// ---- Events: numbered without gaps, written only as fast as the host reads.
let seq = 0, watcher = null;
async function emit(r, body) {
  const event = { seq: ++seq, sessionId: r.ref.sessionId, nativeId: nativeId(r.ref), runId: r.id, ...body };
  const to = watcher;
  if (to && !to.write({ events: [event] }) && to === watcher) await new Promise(ok => to.once('drain', ok));
}

// ---- Runs: prepared for 30 s, committed once, ended once.
const runs = new Map(); // by run id; a committed one is kept, so that a second commit repeats the first answer
const active = ref => [...runs.values()].find(r => r.commit && !r.over && nativeId(r.ref) === nativeId(ref));
const later = ms => new Promise(ok => setTimeout(ok, ms));
async function play(r) {
  const count = /^\/count (\d+)$/.exec(r.text), pieces = count ? Number(count[1]) : r.text.match(/\S*\s*/g).filter(Boolean);
  await emit(r, { runStarted: { nativeRunId: 'r-' + r.id, inputMessageId: 'u-' + r.id } });
  let said = '';
  for (let i = 0; i < (count ? pieces : pieces.length) && !r.stopped; i++) {
    const text = count ? `${i}${[' ', '  ', '\n', '\t'][i % 4]}` : pieces[i];
    said += text;
    await emit(r, { text: { partId: 'p1', text } });
    if (pieces < 10000) await later(12);
  }
  if (said) sessions[nativeId(r.ref)].messages.push({ id: 'a-' + r.id, role: 'ROLE_ASSISTANT', text: said, run: r.id, at: Date.now() });
  save();
  r.over = true;
  await emit(r, { runEnded: { reason: r.stopped ? 'END_REASON_CANCELLED' : 'END_REASON_COMPLETED' } });
}

const description = { runtimeId: 'tiny', name: 'Tiny', pluginVersion: '1.0.0', sessionLayout: 'SESSION_LAYOUT_MANY' };
const runtimeService = {
  Describe: answer(() => ({ description })),
  Configure: answer(q => {
    need(q.instanceId && path.isAbsolute(q.dataDir), 'config_invalid');
    try { if (q.config && q.config.data.length) JSON.parse(q.config.data); } catch { need(false, 'config_invalid'); }
    file = path.join(q.dataDir, 'tiny.json');
    if (fs.existsSync(file)) sessions = JSON.parse(fs.readFileSync(file));
    return {};
  }),
  Health: answer(() => ({ status: { condition: 'CONDITION_READY', evidenceAt: time(Date.now()), nativeVersion: '1.0.0' } })),
  Watch: call => {
    if (watcher) watcher.emit('error', fail('watch_replaced', status.ABORTED));
    watcher = call;
    call.on('cancelled', () => { if (watcher === call) watcher = null; call.emit('drain'); }); // nobody waits on a dead stream
  },
  Shutdown: answer(() => { for (const r of runs.values()) r.stopped = true; return {}; }),
};
const conversationService = {
  ListSessions: call => {
    const list = call.request.archived ? [] : Object.entries(sessions).sort((a, b) => b[1].updated - a[1].updated);
    call.write({ sessions: list.map(([id, s]) => ({
      ref: { sessionId: s.sessionId, nativeId: id, projectPath: s.project }, kind: 'SESSION_KIND_DIRECT', title: s.title,
      continuation: 'CONTINUATION_ALLOWED', updatedAt: time(s.updated),
      lastMessage: s.messages.length ? { role: s.messages.at(-1).role, text: s.messages.at(-1).text.slice(0, 2000) } : {},
    })) });
    call.write({ end: { complete: true, asOfSeq: seq } });
    call.end();
  },
  ReadHistory: answer(q => {
    const all = find(q.session)?.messages ?? [];
    need(Number(q.maxBytes) <= 7 << 20);
    need(!q.cursor || /^\d{1,9}$/.test(q.cursor) && q.cursor >= 1 && q.cursor <= all.length, 'cursor_invalid');
    const to = q.cursor ? Number(q.cursor) : all.length;
    let from = to, size = 0;
    while (from > 0 && to - from < (q.maxMessages || 100) && (size += all[from - 1].text.length * 3 + 200) <= (Number(q.maxBytes) || 7 << 20)) from--;
    need(from < to || to === 0, 'message_too_large', status.FAILED_PRECONDITION);
    return { messages: all.slice(from, to).map(row), nextCursor: from > 0 ? String(from) : '', asOfSeq: seq };
  }),
  PrepareRun: answer(q => {
    find(q.session);
    need(q.runId && q.runId.length <= 1024);
    for (const p of q.input) need(p.content !== undefined && (p.content !== 'data' || p.contentType && p.data.length), 'attachment_malformed');
    need(q.input.every(p => p.content === 'text'), 'attachment_unsupported');
    const text = q.input.map(p => p.text).join('\n'), print = JSON.stringify(q), old = runs.get(q.runId);
    need(text, 'prompt_empty');
    need(!Object.keys(q.options).length, 'option_invalid');
    need(!old || old.print === print, 'operation_conflict', status.ABORTED);
    need(old || !active(q.session), 'run_active', status.FAILED_PRECONDITION);
    if (!old) {
      const expiry = setTimeout(() => runs.delete(q.runId), 30000).unref();
      runs.set(q.runId, { id: q.runId, ref: q.session, text, print, expiry });
    }
    return { session: { ...q.session, nativeId: nativeId(q.session) } };
  }),
  CommitRun: answer(q => {
    need(q.runId && q.runId.length <= 1024);
    const r = runs.get(q.runId);
    if (!r) return { outcome: 'OUTCOME_NOT_DISPATCHED', code: 'not_dispatched' };
    if (r.commit) return r.commit;
    clearTimeout(r.expiry);
    const s = sessions[nativeId(r.ref)] ??= { sessionId: r.ref.sessionId, project: r.ref.projectPath, title: r.text.slice(0, 60), messages: [] };
    s.updated = Date.now();
    s.messages.push({ id: 'u-' + r.id, role: 'ROLE_USER', text: r.text, run: r.id, at: s.updated });
    save(); // from here on the runtime has the prompt
    r.commit = { outcome: 'OUTCOME_DISPATCHED', nativeRunId: 'r-' + r.id };
    play(r);
    return r.commit;
  }),
  AbandonRun: answer(q => { need(q.runId && q.runId.length <= 1024); if (!runs.get(q.runId)?.commit) runs.delete(q.runId); return {}; }),
  StopRun: answer(q => {
    find(q.session);
    need(q.runId);
    const r = runs.get(q.runId);
    if (!r?.commit || r.over) return { outcome: 'OUTCOME_NOT_DISPATCHED', code: 'run_not_active' };
    r.stopped = true;
    return { outcome: 'OUTCOME_DISPATCHED' };
  }),
};

serve(runtimeService, conversationService);
