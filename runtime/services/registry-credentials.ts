/** Where the user and password for a registry come from: variables, then Docker's configuration. */
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { findCredentials, type Credentials } from '../core/docker-config.ts'
import type { Environment } from './shell.ts'

const MOST_BYTES = 1024 * 1024

/**
 * FLASHER_REGISTRY_USER and _PASSWORD for the host named by FLASHER_REGISTRY_HOST and for no other;
 * then the configuration in DOCKER_AUTH_CONFIG, in the folder DOCKER_CONFIG, in `~/.docker`.
 */
export async function readCredentials(env: Environment, host: string): Promise<Credentials | null> {
  const own = env['FLASHER_REGISTRY_HOST']?.trim().toLowerCase()
  const user = env['FLASHER_REGISTRY_USER'] ?? ''
  if (own === host && user !== '') return { user, password: env['FLASHER_REGISTRY_PASSWORD'] ?? '' }
  const told = findCredentials(env['DOCKER_AUTH_CONFIG'] ?? '', host)
  return told ?? findCredentials(await readConfig(env), host)
}

async function readConfig(env: Environment): Promise<string> {
  const { DOCKER_CONFIG: folder = '', HOME: home = '' } = env
  if (folder === '' && home === '') return ''
  try {
    await using handle = await open(join(folder || join(home, '.docker'), 'config.json'), 'r')
    const { size } = await handle.stat()
    return size > MOST_BYTES ? '' : await handle.readFile('utf8')
  } catch {
    return '' // Best effort: most images are public, and a refusal says where passwords are looked for.
  }
}
