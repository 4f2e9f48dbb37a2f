/** Lists the places of configuration files (docs/decisions/0014): the one that is named, or the usual ones. */

export interface ConfigPath {
  readonly kind: 'file' | 'folder'
  readonly path: string
  /** Somebody named it, so that it must be there. */
  readonly isNamed: boolean
}

interface ConfigPaths {
  /** The winner first. `kind` of named ones is still to be looked up. */
  readonly configPaths: readonly ConfigPath[]
  /** Whether `<state_dir>/flasher.toml` comes last. */
  readonly withStateFile: boolean
}

export const CONFIG_FILE = 'flasher.toml'

/**
 * `named`: what `--config` said, in its order. Else `FLASHER_CONFIG_FILE` and `FLASHER_CONFIG_DIR`.
 * `systemDir`: `/etc/flasher`.
 */
export function decideConfigPaths(
  named: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  systemDir: string,
): ConfigPaths {
  const variables = [env['FLASHER_CONFIG_FILE'], env['FLASHER_CONFIG_DIR']]
  const paths = named.length > 0 ? named : variables.flatMap((path) => path || [])
  if (paths.length > 0) {
    const configPaths = paths.map((path) => ({ kind: 'file', path, isNamed: true }) as const)
    return { configPaths, withStateFile: false }
  }
  return {
    configPaths: [
      { kind: 'folder', path: `${systemDir}/conf.d`, isNamed: false },
      { kind: 'file', path: `${systemDir}/${CONFIG_FILE}`, isNamed: false },
    ],
    withStateFile: true,
  }
}
