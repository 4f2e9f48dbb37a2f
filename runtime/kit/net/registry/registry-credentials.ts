/** Finds the user and password for a registry: in variables, then in the files of Docker and Podman. */
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type Credentials,
  findCredentials,
  findHelper,
  parseHelperAnswer,
} from './rules/docker-config.ts'
import { loginsOf, namesOfRegistry } from './rules/docker-hub.ts'
import type { Environment } from '#kit/host/shell.ts'

const MAX_BYTES = 1024 * 1024
const HELPER_MS = 10_000

/**
 * FLASHER_REGISTRY_USER and _PASSWORD for the host named by FLASHER_REGISTRY_HOST and for no other;
 * then the configuration in DOCKER_AUTH_CONFIG, in the folder DOCKER_CONFIG, in `~/.docker`, and
 * Podman's; each may name a program that keeps them (`docker-credential-…`).
 */
export async function readCredentials(env: Environment, host: string): Promise<Credentials | null> {
  const own = readOwn(env, host)
  if (own !== null) return own
  const given = await findIn(env['DOCKER_AUTH_CONFIG'] ?? '', env, host)
  if (given !== null) return given
  for (const path of listAuthFiles(env)) {
    const found = await findIn(await readConfig(path), env, host)
    if (found !== null) return found
  }
  return null
}

function readOwn(env: Environment, host: string): Credentials | null {
  const own = env['FLASHER_REGISTRY_HOST']?.trim().toLowerCase() ?? ''
  const user = env['FLASHER_REGISTRY_USER'] ?? ''
  const isOwn = user !== '' && namesOfRegistry(host).includes(own)
  return isOwn ? { user, password: env['FLASHER_REGISTRY_PASSWORD'] ?? '' } : null
}

function listAuthFiles(env: Environment): readonly string[] {
  const {
    HOME: home,
    DOCKER_CONFIG: docker,
    XDG_RUNTIME_DIR: runtime,
    REGISTRY_AUTH_FILE: named,
  } = env
  const dockers = docker || below(home, '.docker')
  return [
    below(dockers, 'config.json'),
    named ?? '',
    below(runtime, 'containers/auth.json'),
    below(home, '.config/containers/auth.json'),
  ].filter(Boolean)
}

const below = (folder: string | undefined, name: string) => (folder ? join(folder, name) : '')

async function findIn(text: string, env: Environment, host: string): Promise<Credentials | null> {
  if (text === '') return null
  const found = findCredentials(text, host)
  if (found !== null) return found
  const helper = findHelper(text, host)
  return helper === null ? null : askHelper(helper, env, host)
}

/** Best effort, as all of this: one that is not installed or knows nothing means no password. */
async function askHelper(helper: string, env: Environment, host: string) {
  try {
    const { createShell } = await import('#kit/host/shell.ts')
    const shell = createShell({ env })
    for (const input of loginsOf(host)) {
      const asked = { input, timeout: HELPER_MS }
      const answer = await shell.run([`docker-credential-${helper}`, 'get'], asked)
      const found = answer.exitCode === 0 ? parseHelperAnswer(answer.stdout) : null
      if (found !== null) return found
    }
    return null
  } catch {
    return null
  }
}

async function readConfig(path: string): Promise<string> {
  try {
    await using handle = await open(path, 'r')
    const { size } = await handle.stat()
    return size > MAX_BYTES ? '' : await handle.readFile('utf8')
  } catch {
    return '' // Best effort: most images are public, and a refusal says where passwords are looked for.
  }
}
