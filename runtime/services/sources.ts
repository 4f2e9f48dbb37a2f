/** Where an image's bytes come from: a file, standard input or a URL, behind one interface. */
import type { Readable } from 'node:stream'
import { Fault } from '../core/fault.ts'
import { parseLocation, renderLocationRefusal, type Location } from '../core/location.ts'
import { openFileSource } from './file-source.ts'
import type { openHttpSource } from './http-source.ts'
import type { Environment } from './shell.ts'
import { openStdinSource } from './stdin-source.ts'

/** An opened source. Offsets and lengths are bytes. */
export interface Source extends AsyncDisposable {
  /** What to call it on screen: a path, `-`, or a URL without its credentials. */
  readonly name: string
  /** The last part of path or URL, from which the format is told. */
  readonly fileName: string
  readonly path: string | null
  /** Without credentials: to be shown, not to be asked. */
  readonly url: string | null
  /** Null where the source does not say. */
  readonly sizeBytes: number | null
  /** Tells one version of the bytes from another (an ETag, a date); absent where nothing does. */
  readonly version?: string | null
  /**
   * Reads up to `into.length` bytes at `offset`, fewer only at the end; null: no random access.
   * Several may be under way at once.
   */
  readonly readAt: ((into: Buffer, offset: number) => Promise<number>) | null
  /**
   * All bytes from `from` on, in order; survives what it can, else throws a Fault. Once for stdin.
   * A chunk is the reader's until it asks for the next one; then its memory may be used again.
   */
  stream(from?: number): AsyncIterable<Buffer>
}

export interface OpenOptions {
  /** Ends every wait of this source, at once, with a Fault `cancelled`. */
  readonly signal?: AbortSignal | undefined
}

export interface Sources {
  /**
   * `location`: a path, `-` or an http(s) URL. Throws a Fault `input-missing` where nothing is
   * there, `input-invalid` where it is nothing that can be read as an image.
   */
  open(location: string, options?: OpenOptions): Promise<Source>
}

export interface SourcesOptions {
  /** Names proxies (`http_proxy`, `https_proxy`, `no_proxy`) and FLASHER_CA_FILE. */
  readonly env: Environment
  readonly stdin?: Readable
  /** Milliseconds without a byte after which a connection counts as broken. */
  readonly stallMs?: number
  /** Milliseconds before a broken connection is first tried again. */
  readonly retryMs?: number
}

export function createSources(options: SourcesOptions): Sources {
  const { env, stallMs = 30_000, retryMs = 500 } = options

  function openAt(location: Location, signal: AbortSignal | undefined) {
    switch (location.kind) {
      case 'stdin':
        return openStdinSource(options.stdin ?? process.stdin, signal)
      case 'file':
        return openFileSource(location.path, signal)
      case 'http':
        return openRemote(location.target, { env, signal, stallMs, retryMs })
    }
  }

  return {
    async open(text, { signal } = {}) {
      const location = parseLocation(text)
      if (!location.ok) throw new Fault('input-invalid', renderLocationRefusal(location.refusal))
      return openAt(location.value, signal)
    },
  }
}

/** Loaded only where it is wanted: Node's HTTP takes its time and 12 MB of memory. */
const openRemote: typeof openHttpSource = async (...order) =>
  (await import('./http-source.ts')).openHttpSource(...order)
