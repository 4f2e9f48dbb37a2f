/** Current line: what machines boot from, opened for the server: the boot directory and what fills it. */
import { createBootFiles, type BootFolder } from '../../../services/boot-files.ts'
import { decideFolders, type LineConfig } from './configuration.ts'
import type { State } from './state.ts'

export interface Netboot extends AsyncDisposable {
  readonly bootFiles: BootFolder
}

export interface NetbootParts {
  readonly config: LineConfig
  readonly state: State
  now(): Date
}

export async function openNetboot({ config, state, now }: NetbootParts): Promise<Netboot> {
  const bootFiles = await createBootFiles({
    dir: decideFolders(config).boot,
    changed: () => state.feed.announce({ topic: 'fetch', key: 'active' }),
    now,
  })
  return {
    bootFiles,
    [Symbol.asyncDispose]: () => bootFiles[Symbol.asyncDispose](),
  }
}
