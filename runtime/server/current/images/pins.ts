/** Current line: reports to the cache service which images machines are bound to, so that it keeps them; the cache's address and token. */
import {
  type ImageUser,
  MAX_CAPTURED,
  MAX_NAMED_USERS,
  MAX_USERS,
} from '#engine/catalog/rules/cache-entry.ts'
import { naturalKey } from '#kit/net/rules/natural-order.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import { DATA_FOLDER } from '#cache/store/pins.ts'
import { readLocalToken } from '#fleet/access/tokens.ts'
import { createPinner } from '#engine/catalog/cache-client.ts'
import { deriveSecret, type Secret } from '#kit/web/access/secret.ts'
import type { Environment } from '#kit/host/shell.ts'
import { decideFolders, type LineConfig } from '#server/current/assembly/configuration.ts'
import type { State } from '#server/current/assembly/state.ts'

interface PinsDependencies {
  readonly config: LineConfig
  readonly state: Pick<State, 'changes' | 'machines' | 'channels'>
  readonly secret: Secret
  /** Counts when no other cache is set. */
  readonly cacheBeside: string | null
  /** For proxies and FLASHER_CA_FILE. */
  readonly env: Environment
  readonly log: { warn(message: string): void }
}

/**
 * The token of a service beside the server is read, any other is a setting; without one, nothing is
 * sent.
 */
export function startPinner({ config, state, secret, cacheBeside, env, log }: PinsDependencies) {
  const { changes, machines, channels } = state
  return createPinner({
    ...findCache({ config, cacheBeside }),
    bound: async () => (await machines.list()).map(({ bty_image_ref: ref }) => ref),
    captured: async () =>
      (await machines.list())
        .filter(({ capture, labels }) => capture !== null && labels.length > 0)
        .slice(0, MAX_CAPTURED)
        .map(({ mac, labels }) => ({ mac, labels })),
    users: async () => listUsers(await machines.list()),
    promised: () => channels.list().map(({ bty_image_ref: ref }) => ref),
    // Unique: holders that share a name would take each other's images back.
    holder: `flasher-web ${deriveSecret(secret, 'cache holder').sign('').slice(0, 16)}`,
    env,
    changes,
    log,
  })
}

function listUsers(machines: readonly Machine[]): readonly ImageUser[] {
  const users = machines.flatMap(({ bty_image_ref: ref, name, hostname, mac }) =>
    ref === null ? [] : [{ ref, mac, name: name ?? hostname ?? mac }],
  )
  const keyed = users.map((user) => ({ user, key: naturalKey(user.name) }))
  const sorted = keyed.toSorted((one, other) => (one.key < other.key ? -1 : 1))
  return Map.groupBy(sorted, ({ user }) => user.ref)
    .values()
    .flatMap((of) => of.slice(0, MAX_NAMED_USERS))
    .map(({ user }) => user)
    .take(MAX_USERS)
    .toArray()
}

/** Getters that follow the settings. Null: the token is unknown. */
export function findCache({
  config,
  cacheBeside,
}: Pick<PinsDependencies, 'config' | 'cacheBeside'>) {
  const settings = () => config.current().withcache
  return {
    url: () => settings().url || cacheBeside,
    async token(): Promise<string | null> {
      const { url, token } = settings()
      if (token !== '') return token
      if (url !== '' || cacheBeside === null) return null
      return await readLocalToken(`${decideFolders(config).cache}/${DATA_FOLDER}/token`)
    },
  }
}
