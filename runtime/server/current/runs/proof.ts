/** `/pxe/{mac}/booted/{token}`: where a system that was flashed says, once, that it has booted. */
import { getRouterParam, type H3Event } from 'h3'
import { listNeighbours, type Proofs, type ProvedRun } from '#fleet/proof/proofs.ts'
import { areOwnCards, listOthers, parseProofToken } from '#fleet/proof/rules/proof.ts'
import { takeOne, type Bucket } from '#kit/foundation/bucket.ts'
import { nothing, type Answer } from '#kit/web/answers/answers.ts'
import { readMac } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { Secret } from '#kit/web/access/secret.ts'
import type { PlainEvent } from '#kit/web/answers/caller.ts'
import type { Route } from '#kit/web/answers/route.ts'
import type { Site } from '#server/routes/site.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'

interface ProofRoutesDependencies {
  readonly proofs: Proofs
  readonly bootKey: Pick<Secret, 'verify'>
}

const MAX_CALL_BYTES = 4096
/** Per address: a rack may stand behind one. */
const CALLS = { perMinute: 600, most: 300 }
const MAX_BUCKETS = 10_000
const RETRY_SECONDS = 30

export function proofRoutes(
  site: Site<Machine>,
  { proofs, bootKey }: ProofRoutesDependencies,
): readonly Route[] {
  const buckets = new Map<string, Bucket>()
  const now = () => site.elapsed?.() ?? performance.now()
  proofs.onEnd((run) => record(site, run))

  function admit(event: H3Event): void {
    const from = site.peer(event).ip ?? ''
    if (buckets.size > MAX_BUCKETS) buckets.clear()
    const next = takeOne(buckets.get(from) ?? null, now(), CALLS)
    if (next === null) {
      const headers = { 'retry-after': String(RETRY_SECONDS) }
      throw refuse(429, 'too many calls from this address', { headers })
    }
    buckets.set(from, next)
  }

  /** The answer is always the same: who guesses, repeats or copies an address learns nothing. */
  async function take(event: H3Event, bytes: AsyncIterable<Uint8Array>): Promise<Answer> {
    for await (const _ of bytes);
    const mac = readMac(event)
    const token = getRouterParam(event, 'token') ?? ''
    const issued = parseProofToken(token, mac, bootKey.verify)
    const since = proofs.since(mac)
    if (issued === null || since === null) return nothing()
    const call = { mac, ip: site.peer(event).ip, since }
    const others = listOthers(call, await listNeighbours(), site.machines.peekAll())
    if (others.length > 0) {
      const hardware = await site.machines.findHardware(mac)
      if (!areOwnCards(others, hardware?.json ?? null)) return nothing()
    }
    await proofs.call(mac, issued)
    return nothing()
  }

  return [
    {
      method: 'POST',
      path: '/pxe/:mac/booted/:token',
      access: 'open',
      takes: 'bytes',
      admit,
      most: MAX_CALL_BYTES,
      doc: {
        summary: 'Called by a flashed system after its first boot; the answer is empty',
        body: { type: 'string' },
        answers: { 204: null },
        refuses: [429],
        isNeverMissing: true,
      },
      handle: take,
    },
  ]
}

async function record({ metrics, recordAll }: Site<Machine>, run: ProvedRun): Promise<void> {
  const { state, how } = run.proof
  metrics.count('flasher_boot_total', { result: state, how: how ?? 'none' })
  const actor = state === 'booted' ? 'pxe-client' : 'system'
  await recordAll([renderProof(run)], { subject_id: run.mac, actor, ip: null })
}

function renderProof({ mac, id, proof }: ProvedRun): PlainEvent {
  const { state, how, seconds, contacts, reason } = proof
  const details = { run: id, how, seconds, contacts, reason }
  const after = seconds === null ? '' : ` ${Math.round(seconds)} s after its flash`
  switch (state) {
    case 'watching':
    case 'booted':
      return { kind: 'machine.booted', summary: `${mac} booted its new system${after}`, details }
    case 'seen': {
      const summary = `${mac} answered on the network${after}, but it is not certain that its new system is running`
      return { kind: 'machine.boot_seen', summary, details }
    }
    case 'not-seen': {
      const summary = `${mac} was flashed, but its new system was not seen: ${reason ?? ''}`
      return { kind: 'machine.boot_not_seen', summary, details }
    }
    case 'failed': {
      const summary = `${mac} failed to boot its new system: ${reason ?? ''}`
      return { kind: 'machine.boot_failed', summary, details }
    }
  }
}
