#!/usr/bin/env node
/** Starts `flasher-web`: the machine server, or one of its commands. */
import { loadLine } from './line.ts'
import { listen } from './listen.ts'
import { leave, openProcess } from './open-process.ts'

const environment = openProcess('flasher-web')
const { web } = await loadLine(environment)
await leave(await web({ ...environment, listen }))
