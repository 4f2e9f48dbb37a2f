/** The command line of `pnpm build:release`. */
import { readArguments, UsageError, type Script } from './arguments.ts'
import { readLevel } from './command.ts'
import type { Level } from '#build/steps/step.ts'

export interface ReleaseOptions {
  readonly level: Level
  readonly tag: string
  /** Whether images are built; else those that are in `dist` are taken. */
  readonly buildsImages: boolean
  /** Whether a missing asset is an error. */
  readonly isComplete: boolean
  /** An SSH key, or null. */
  readonly key: string | null
  /** An OpenPGP key for the apt repository: a file, or a fingerprint; null: there is none. */
  readonly aptKey: string | null
  /** The address below which the files will be published; null: it is not known yet. */
  readonly url: string | null
  readonly twice: boolean
  readonly plan: boolean
}

const SCRIPT = {
  name: 'build:release',
  summary: [
    'Makes the folders of a release, dist/release/current and dist/release/earlier, ready to be published.',
    'Images are built first; those that are in dist/ already and that cannot be built here are taken along.',
  ],
  options: {
    level: { value: 'dev|release', help: 'How hard compressors try', default: 'release' },
    tag: { value: 'TAG', help: 'The tag of the release, instead of v and the version' },
    sign: { value: 'KEY', help: 'Signs manifest and checksums with this SSH key (ed25519)' },
    'apt-key': {
      value: 'KEY',
      help: 'Makes an apt repository, signed with this OpenPGP key: a file, or a fingerprint',
    },
    url: {
      value: 'URL',
      help: 'Where the files will be published: imager.json and the recipes of other package managers name it',
    },
    complete: { help: 'A missing asset is an error' },
    'skip-images': { help: 'Takes the images that are in dist/, and builds none' },
    twice: { help: 'Builds everything from nothing in two places and compares the bytes' },
    plan: { help: 'Prints the steps and builds nothing' },
  },
  examples: ['--sign ~/.ssh/flasher-release --complete', '--skip-images --level dev'],
} as const satisfies Omit<Script, 'version'>

/**
 * Reads the command line of a release.
 *
 * @param argv has neither program nor script.
 * @returns null when help or the version was asked for and printed.
 * @throws {UsageError} An argument is wrong.
 */
export function readRelease(argv: readonly string[], version: string): ReleaseOptions | null {
  const given = readArguments({ ...SCRIPT, version }, argv)
  if (given === null) return null
  const { switches, values } = given
  if (values['apt-key'] === '') throw new UsageError('--apt-key requires a key')
  if (values['sign'] === '') throw new UsageError('--sign requires a key file')
  return {
    level: readLevel(values['level']),
    tag: readTag(values['tag'] ?? `v${version}`),
    buildsImages: !switches.has('skip-images'),
    isComplete: switches.has('complete'),
    key: values['sign'] ?? null,
    aptKey: values['apt-key'] ?? null,
    url: readUrl(values['url'] ?? null),
    twice: switches.has('twice'),
    plan: switches.has('plan'),
  }
}

/** Other programs take it as it is; it is published, so it has no password. */
function readUrl(given: string | null): string | null {
  if (given === null) return null
  const url = URL.parse(given)
  const isWeb = /^https?:$/.test(url?.protocol ?? '')
  if (isWeb && url?.username === '' && url.password === '') return given
  throw new UsageError(
    `--url must be like https://host/owner/name/releases/download/v1.2.3, without a login${given && !isWeb ? `, not ${given}` : ''}`,
  )
}

/** It becomes part of addresses. */
function readTag(tag: string): string {
  if (/^[A-Za-z0-9][\w.+-]{0,99}$/.test(tag) && tag !== 'latest') return tag
  throw new UsageError(`--tag must be like v1.2.3${tag && `, not ${tag}`}`)
}
