/** A workflow that runs on the server against a machine: its name, its configuration, what its log keeps. */
import { stringify } from 'smol-toml'

/** From the time (ISO 8601): a machine never begins two runs in a millisecond. */
export const renderRunId = (iso: string): string => iso.replace(/[^0-9TZ]/g, '')

const RUN_ID = /^\d{8}T\d{9}Z$/

export const isRunId = (text: string): boolean => RUN_ID.test(text)

/** A host name or an address, never an option of a program. */
export const isTargetHost = (text: string): boolean =>
  text.length <= 253 && (/^[a-z0-9][\w.:-]*$/i.test(text) || /^::[0-9a-f.:]*$/i.test(text))

interface Transport {
  readonly host: string
  readonly port: number
  readonly key: string
}

/** cijoe's configuration. Table `ssh` becomes the arguments of its SSH library's `connect`. */
export const renderTransport = ({ host, port, key }: Transport): string =>
  `${stringify({
    cijoe: {
      workflow: { fail_fast: true },
      transport: { ssh: { hostname: host, username: 'root', port, key_filename: key } },
    },
  })}\n`

export const listOldRuns = (names: readonly string[], most: number): readonly string[] =>
  names.filter(isRunId).toSorted().slice(0, -most)

/** The variables that a workflow gets: none that may hold a secret of ours. */
export const chooseVariables = (
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) =>
      value === undefined || name.startsWith('FLASHER_') ? [] : [[name, value]],
    ),
  )
