/** Enters a registry: over TLS or in plain, with credentials where it asks for them. */
import type { Environment } from '#kit/host/shell.ts'
import { createHttpClient, type HttpClient } from '../http-client.ts'
import { describeFailure, NO_TLS } from '../rules/network-failure.ts'
import { createRegistryAccess, REGISTRY_BOUNDS, type RegistryActions } from './registry-access.ts'
import { readCredentials } from './registry-credentials.ts'
import { locateRegistry } from './rules/docker-hub.ts'
import { decideSchemes, type OrasRef } from './rules/oras.ts'

export interface RegistryOptions {
  /** Names proxies, FLASHER_CA_FILE, FLASHER_REGISTRY_HTTP and where credentials are. */
  readonly env: Environment
  readonly signal: AbortSignal
  /** The longest wait for a next byte, in milliseconds. */
  readonly stallMs: number
  /** Milliseconds before the first repeat. */
  readonly retryMs: number
  /** Passwords stay here, also where there are some; absent: the registry gets its own. */
  readonly isAnonymous?: boolean
}

export interface RegistryEntrance {
  /** The origin, without a slash at its end. */
  readonly base: string
  readonly repository: string
  /** Lets itself in, again where a token has expired. */
  readonly access: ReturnType<typeof createRegistryAccess>
  readonly bounds: typeof REGISTRY_BOUNDS & Pick<RegistryOptions, 'retryMs' | 'signal'>
}

/**
 * Creates what enters the repository of a reference. `first` is the first request; where it fails
 * as the registry of this machine speaks plain http, it is made once more in plain.
 */
export function createEntrances(options: RegistryOptions) {
  const { env, signal, stallMs } = options
  const client = createHttpClient({ env, signal, stallMs })
  return {
    async enter<First>(
      ref: OrasRef,
      actions: RegistryActions,
      first: (entrance: RegistryEntrance) => Promise<First>,
    ): Promise<RegistryEntrance & { readonly first: First }> {
      const place = locateRegistry(ref)
      const schemes = decideSchemes(place.host, env['FLASHER_REGISTRY_HTTP'] ?? '')
      for (const [at, scheme] of schemes.entries()) {
        const base = `${scheme}://${place.host}`
        const entrance = createEntrance(options, client, { ...place, actions }, base)
        try {
          return { ...entrance, first: await first(entrance) }
        } catch (thrown) {
          if (at === schemes.length - 1 || !isTlsUnknown(thrown)) throw thrown
        }
      }
      throw new Error('there is always a scheme')
    },
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  }
}

function createEntrance(
  { env, signal, retryMs, isAnonymous = false }: RegistryOptions,
  client: HttpClient,
  {
    host,
    repository,
    actions,
  }: ReturnType<typeof locateRegistry> & { readonly actions: RegistryActions },
  base: string,
): RegistryEntrance {
  const bounds = { ...REGISTRY_BOUNDS, retryMs, signal }
  const { origin } = new URL(base)
  const credentials = async () => (isAnonymous ? null : await readCredentials(env, host))
  const access = createRegistryAccess({ bounds, client, origin, repository, actions, credentials })
  return { base, repository, access, bounds }
}

/** Tells whether a request ended as a server that speaks plain http ends a TLS greeting. */
export function isTlsUnknown(thrown: unknown): boolean {
  const failure = describeFailure(thrown)
  return failure !== null && (NO_TLS.has(failure.code) || failure.isHangUp)
}

export const REGISTRY_LOGIN =
  'Set FLASHER_REGISTRY_HOST, FLASHER_REGISTRY_USER and FLASHER_REGISTRY_PASSWORD, or log in with docker or podman; private and absent images look the same from outside.'

export const PLAIN_REGISTRY =
  'If this registry speaks plain http, name it in FLASHER_REGISTRY_HTTP.'

/** What helps where a registry answers a read with such a status. */
export const READ_HINTS: Readonly<Record<number, string>> = {
  401: REGISTRY_LOGIN,
  403: REGISTRY_LOGIN,
  404: 'The registry has no such image: correct the address, or push the image again.',
  429: 'The registry limits how often it is asked: wait, log in, or raise its limit.',
}
