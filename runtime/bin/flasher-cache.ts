#!/usr/bin/env node
/** Starts `flasher-cache`: the cache service, or one command for a running one. */
import { cache } from '#cache/programs.ts'
import { listen } from './listen.ts'
import { leave, openProcess } from './open-process.ts'

const environment = openProcess('flasher-cache')
await leave(await cache({ ...environment, listen }))
