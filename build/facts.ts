/** What a build reads from the checkout and its environment: version, time, folders. */
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { $ } from 'zx/core'
import type { Level } from '#build/steps/step.ts'

/** The checkout of the builder that is running. */
export const CHECKOUT = dirname(import.meta.dirname)

/** Paths whose commits decide the bytes of an image. */
const SOURCES = [
  'appliance',
  'build',
  'mkosi.conf.d',
  'overlays',
  'package.json',
  'pnpm-lock.yaml',
  'runtime',
]

type Environment = Readonly<Record<string, string | undefined>>

/** Reads the version from package.json. Throws when it names none. */
export function readVersion(checkout: string): string {
  const about: unknown = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'))
  if (typeof about !== 'object' || about === null || !('version' in about)) {
    throw new Error('package.json names no version')
  }
  return String(about.version)
}

/**
 * Returns SOURCE_DATE_EPOCH if it is set, else the time of the last commit; at level dev of the
 * last commit to the sources of images, so that a commit to documents rebuilds nothing. The time is
 * in seconds since 1970. Throws when there is neither.
 */
export function readEpoch(checkout: string, level: Level, env: Environment): number {
  const set = Number(env['SOURCE_DATE_EPOCH'])
  if (Number.isSafeInteger(set) && set > 0) return set
  const paths = level === 'release' ? [] : ['--', ...SOURCES]
  const { stdout } = git(checkout, ['log', '-1', '--format=%ct', ...paths])
  const epoch = Number(stdout)
  if (epoch > 0) return epoch
  throw new Error('This checkout has no commit to take the time from: set SOURCE_DATE_EPOCH')
}

/** Paths of all files that a commit of the whole checkout would hold. */
export function listFiles(checkout: string): readonly string[] {
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
  const { ok, stdout, stderr } = git(checkout, args)
  if (!ok) throw new Error(`git cannot list the files of ${checkout}: ${stderr.trim()}`)
  return stdout.split('\0').filter(Boolean)
}

/** Root may build in a clone that belongs to somebody else. */
const git = (checkout: string, args: readonly string[]) =>
  $({
    sync: true,
    nothrow: true,
    quiet: true,
  })`git -c safe.directory=${checkout} -C ${checkout} ${args}`

/** Returns the folder of the build cache, outside of all checkouts, so that they share it. */
export const cacheFolder = (env: Environment): string =>
  env['FLASHER_BUILD_CACHE'] ||
  join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'flasher-build')
