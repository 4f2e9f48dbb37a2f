/** A workflow that runs on the server against a machine: its name, its configuration, what its log keeps. */
import { stringify } from 'smol-toml'

/**
 * Makes a run's id of its time (ISO 8601): it is unique for a machine, whose runs are never begun
 * twice in a millisecond.
 */
export const renderRunId = (iso: string): string => iso.replace(/[^0-9TZ]/g, '')

const RUN_ID = /^\d{8}T\d{9}Z$/

/** Tells whether a text is the id of a run, and so is safe in a path. */
export const isRunId = (text: string): boolean => RUN_ID.test(text)

/** Tells whether a text is a host name or an address, never an option of a program. */
export const isTargetHost = (text: string): boolean =>
  text.length <= 253 && (/^[a-z0-9][\w.:-]*$/i.test(text) || /^::[0-9a-f.:]*$/i.test(text))

interface Transport {
  readonly host: string
  readonly port: number
  /** The path of the private key. */
  readonly key: string
}

/**
 * The configuration that the workflow program reads. What is in the table `ssh` becomes the arguments
 * of the SSH library's `connect`, so the key's is named as there.
 */
export const renderTransport = ({ host, port, key }: Transport): string =>
  `${stringify({
    cijoe: {
      workflow: { fail_fast: true },
      transport: { ssh: { hostname: host, username: 'root', port, key_filename: key } },
    },
  })}\n`

/** The names of runs that are over what is kept, the oldest ones. */
export const listOldRuns = (names: readonly string[], most: number): readonly string[] =>
  names.filter(isRunId).toSorted().slice(0, -most)

/** The variables of the server's own environment that a workflow gets: none that may hold a secret of ours. */
export const chooseVariables = (
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) =>
      value === undefined || name.startsWith('FLASHER_') ? [] : [[name, value]],
    ),
  )
