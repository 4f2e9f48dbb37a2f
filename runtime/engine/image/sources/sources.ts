/** Opens the source of an image, behind one interface: a file, standard input, a URL, a registry or a bucket. */
import { openFileSource, type OpenOptions, type Source } from './source.ts'
import { type Readable, addAbortSignal } from 'node:stream'
import { Fault } from '#kit/foundation/fault.ts'
import {
  parseLocation,
  renderLocationRefusal,
  type Location,
} from '#kit/net/rules/image-location.ts'
import type { Environment } from '#kit/host/shell.ts'
import type { S3Access } from '#kit/net/s3/rules/s3-access.ts'
import { brokenAt, readingCancelled } from '#kit/net/rules/network-failure.ts'

export type Sources = ReturnType<typeof createSources>

export interface SourcesOptions {
  /** Names proxies (`http_proxy`, `https_proxy`, `no_proxy`) and FLASHER_CA_FILE. */
  readonly env: Environment
  readonly stdin?: Readable
  /** Absent: by the variables of AWS's tools. */
  readonly s3?: () => Promise<S3Access>
  /** Milliseconds of silence after which a connection counts as broken. */
  readonly stallMs?: number
  readonly retryMs?: number
  /** Milliseconds of waiting for a place where another one has the same bytes. */
  readonly slowMs?: number
}

export function createSources(given: SourcesOptions) {
  const { env, stdin, s3, stallMs = 30_000, retryMs = 500, slowMs = 20_000 } = given
  const haste = { stallMs: Math.min(stallMs, HASTY_STALL_MS), isHasty: true, slowMs }

  async function openAt(
    location: Location,
    { signal, arch = null, isHasty = false, renew }: OpenOptions,
  ): Promise<Source> {
    const reading = { env, signal, stallMs, retryMs, ...(isHasty ? haste : {}) }
    switch (location.kind) {
      case 'stdin':
        return openStdinSource(stdin ?? process.stdin, signal)
      case 'file':
        return openFileSource(location.path, signal)
      case 'http':
        return (await loadRemote()).openHttpSource(location.target, { ...reading, renew })
      case 'oras':
        return (await loadRemote()).openOrasSource(location.ref, { ...reading, arch })
      case 's3':
        return (await loadRemote()).openS3Source(location.source, { ...reading, access: s3 })
    }
  }

  return {
    retryMs,
    /**
     * A path, `-`, an http(s) URL, an oras reference or `s3://bucket/key`. Throws a Fault
     * `input-missing` or `input-invalid`.
     */
    async open(text: string, options: OpenOptions = {}): Promise<Source> {
      const location = parseLocation(text)
      if (!location.ok) throw new Fault('input-invalid', renderLocationRefusal(location.refusal))
      return openAt(location.value, options)
    },
  }
}

const HASTY_STALL_MS = 8000

/** Lazy: Node's HTTP takes time and 12 MB of memory. */
const loadRemote = () => import('./remote-sources.ts')

/** Standard input as a Source: read once, in order, of unknown size. */
const NAME = '-'

/** Throws a Fault `misuse` where a person sits at standard input. */
function openStdinSource(input: Readable, signal?: AbortSignal): Source {
  if ('isTTY' in input && input.isTTY === true) {
    throw new Fault('misuse', 'standard input is a terminal: pipe an image into it, or name a file')
  }
  if (signal !== undefined) addAbortSignal(signal, input)
  let isTaken = false

  async function* stream(from = 0) {
    if (isTaken || from > 0) {
      throw new Fault('misuse', 'standard input can be read once only, from its start')
    }
    isTaken = true
    let at = 0
    try {
      for await (const chunk of input) {
        if (!(chunk instanceof Buffer)) throw new TypeError('standard input is not read as bytes')
        at += chunk.length
        yield chunk
      }
    } catch (cause) {
      if (signal?.aborted) throw readingCancelled('standard input')
      throw brokenAt({ name: NAME, at, sizeBytes: null }, 'standard input broke', { cause })
    }
  }

  return {
    name: NAME,
    fileName: NAME,
    path: null,
    url: null,
    sizeBytes: null,
    readAt: null,
    stream,
    async [Symbol.asyncDispose]() {
      input.destroy()
    },
  }
}
