/** Probes a TFTP daemon now and then with a small file, so that pages show its state without waiting. */
import { createSocket, type Socket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { renderError, systemCodeOf } from '#kit/foundation/fault.ts'
import {
  describeTftp,
  FIRST_FILE,
  nextProbe,
  parseTftpAnswer,
  renderReadRequest,
  renderTftpError,
  type TftpFinding,
  type TftpState,
} from './rules/readiness.ts'

interface TftpProbeDependencies {
  /** Read at each look; empty: this host. */
  host(): string
  readonly port?: number
  readonly waitMs?: number
  readonly keepMs?: number
  /** Absent: what most machines load first. */
  readonly first?: string
  changed?(): void
}

/** ICMP refusals come at once; after this long we check whether it was one. */
const HEAR_MS = 150

/** Milliseconds: `waitMs` for an answer, `keepMs` until a finding is old. */
export function createTftpProbe(dependencies: TftpProbeDependencies) {
  const { port = 69, waitMs = 1500, keepMs = 10_000, first = FIRST_FILE } = dependencies
  const hostOf = () => dependencies.host() || '127.0.0.1'
  let found: ProbeResult = { host: hostOf(), file: first, finding: { kind: 'unasked' } }
  let lookedAt = -Infinity
  let looking: Promise<TftpState> | null = null

  async function ask(): Promise<TftpState> {
    const before = JSON.stringify(found)
    found = await probe(hostOf(), port, waitMs, first)
    lookedAt = performance.now()
    if (JSON.stringify(found) !== before) dependencies.changed?.()
    return describe(found)
  }

  function inspect(): Promise<TftpState> {
    looking ??= ask().finally(() => {
      looking = null
    })
    return looking
  }

  return {
    /** The last finding. Starts a new look if that is old. */
    state(): TftpState {
      const isOld = performance.now() - lookedAt > keepMs || hostOf() !== found.host
      // Never rejects: whatever happens is a finding.
      if (isOld) void inspect()
      return describe(found)
    },
    inspect,
  }
}

interface ProbeResult {
  readonly host: string
  readonly file: string
  readonly finding: TftpFinding
}

const describe = ({ finding, host, file }: ProbeResult) => describeTftp(finding, host, file)

async function probe(
  host: string,
  port: number,
  waitMs: number,
  first: string,
): Promise<ProbeResult> {
  try {
    const { address, family } = await lookup(host)
    const type = family === 6 ? 'udp6' : 'udp4'
    for (let file = first; ;) {
      const finding = await exchange({ address, port, type, waitMs, file })
      const next = nextProbe(file, finding)
      if (next === null) return { host, file, finding }
      file = next
    }
  } catch (thrown) {
    const finding = { kind: 'unreachable', why: renderError(thrown) } as const
    return { host, file: first, finding }
  }
}

interface ProbeTarget {
  readonly address: string
  readonly port: number
  readonly type: 'udp4' | 'udp6'
  readonly waitMs: number
  readonly file: string
}

/**
 * Two sockets: the answer comes from another port, which a connected socket does not receive, but
 * only a connected one receives a refusal.
 */
async function exchange(peer: ProbeTarget): Promise<TftpFinding> {
  const { address, port, type, waitMs, file } = peer
  const [asking, hearing] = [createSocket(type), createSocket(type)]
  const timers: NodeJS.Timeout[] = []
  try {
    return await new Promise<TftpFinding>((resolve) => {
      const fail = (error: Error) => resolve({ kind: 'unreachable', why: renderError(error) })
      asking.on('error', fail)
      asking.on('message', (bytes, from) => {
        const finding = from.address === address ? parseTftpAnswer(bytes) : null
        if (finding === null) return
        if (finding.kind === 'serves') asking.send(renderTftpError(), from.port, address)
        resolve(finding)
      })
      asking.send(renderReadRequest(file), port, address, (error) => {
        if (error !== null) fail(error)
      })
      timers.push(setTimeout(() => listenForRefusal(hearing, peer, resolve), HEAR_MS))
      timers.push(setTimeout(resolve, waitMs, { kind: 'silent', seconds: waitMs / 1000 }))
    })
  } finally {
    for (const timer of timers) clearTimeout(timer)
    // The last packet is sent before the socket closes.
    setImmediate(() => asking.close())
    hearing.close()
  }
}

function listenForRefusal(
  hearing: Socket,
  { address, port, file }: ProbeTarget,
  resolve: (finding: TftpFinding) => void,
): void {
  hearing.on('error', (error) => {
    if (systemCodeOf(error) === 'ECONNREFUSED') resolve({ kind: 'refused' })
  })
  hearing.connect(port, address, () => {
    try {
      hearing.send(renderReadRequest(file))
    } catch {
      // Closed: the answer came after all.
    }
  })
}
