/** The pages' texts in the language that is in use; another language is one more table, named here. */
import type { Translated } from '#kit/texts/text.ts'
import { ACCOUNT } from './english/account.ts'
import { BACKUPS } from './english/backups.ts'
import { DASHBOARD } from './english/dashboard.ts'
import { EARLIER } from './english/earlier.ts'
import { EVENTS } from './english/events.ts'
import { FIRST_BOOT } from './english/first-boot.ts'
import { FRAME } from './english/frame.ts'
import { IMAGES } from './english/images.ts'
import { MACHINE } from './english/machine.ts'
import { MACHINES } from './english/machines.ts'
import { NETBOOT } from './english/netboot.ts'
import { PEOPLE } from './english/people.ts'
import { POWER } from './english/power.ts'
import { RUNS } from './english/runs.ts'
import { SETTINGS } from './english/settings.ts'
import { VIEW } from './english/view.ts'

/** The pages of notifications: receivers, their rules and what was sent. */
const NOTIFICATIONS = {
  title: 'Notifications',
  card: {
    text: 'Who is notified of what happens, by webhook, mail or Slack.',
    count: { one: '1 receiver.', other: '{count} receivers.' },
  },
  list: 'Receivers of notifications',
  empty: {
    title: 'Nobody is notified yet',
    text: 'Add a receiver, send it a test, and select which events it hears of.',
  },
  add: {
    title: 'Add a receiver',
    link: 'Add',
    heading: 'Add a receiver: {kind}',
    button: 'Add receiver',
  },
  edit: { title: 'Address and name', button: 'Save' },
  secretKept: 'One is kept. Leave empty to keep it; another server or user needs it again.',
  states: {
    none: 'Nothing sent yet.',
    delivered: 'Delivered {time}.',
    partly: 'Delivered {time}, but not to everyone: {failure}.',
    failing: 'Failing since {time}: {failure}. Next attempt {next}.',
    'given-up': 'Given up {time}: {failure}.',
    waiting: 'A message waits to be sent.',
    paused: 'Paused: what happens meanwhile is not sent.',
  },
  address: 'Address',
  state: 'State',
  rules: {
    title: 'What it hears of',
    none: 'No rule: it hears of nothing.',
    add: 'Add a rule',
    change: 'Change',
    remove: 'Remove',
    newTitle: 'Add a rule for {name}',
    editTitle: 'Change a rule of {name}',
    events: 'Events',
    search: 'Only of machines that match',
    searchHint:
      'A search as on the machines page, for example label:rack-3. Leave empty for everything.',
    person: 'Only what this person did or armed',
    personHint: 'A name, or administrator. Leave empty for everybody.',
    save: 'Save rule',
  },
  log: {
    title: 'Deliveries, newest first',
    none: 'Nothing was sent yet.',
    again: 'Send again',
    attempts: { one: '1 attempt', other: '{count} attempts' },
    states: {
      waiting: 'waiting',
      partly: 'some addresses wait',
      delivered: 'delivered',
      'given-up': 'given up',
    },
    test: 'test',
  },
  buttons: { test: 'Send a test', pause: 'Pause', resume: 'Resume' },
  remove: {
    button: 'Remove…',
    title: 'Remove {name}',
    question: 'Remove the receiver {name}?',
    consequence: 'What waits for it is not sent, and its deliveries are forgotten.',
    confirm: 'Remove receiver',
  },
  done: {
    added: '{name} was added. Send it a test.',
    saved: '{name} was saved.',
    tested: 'The test to {name} was delivered.',
    paused: '{name} is paused.',
    resumed: '{name} is notified again, from now on.',
    again: 'The message is sent to {name} again.',
    removed: '{name} was removed.',
  },
  errors: {
    'name-taken': 'That name is in use.',
    'too-many': 'There are {count} receivers already.',
    'too-many-rules': 'There are {count} rules already.',
    unknown: 'That receiver was removed already.',
    'secret-missing': 'Enter it: without it nothing can be sent.',
    fields: 'Correct the fields that are marked.',
    user: 'Without encryption the password would be readable on its way: select STARTTLS or TLS.',
    events: 'Select at least one kind of event.',
    search: 'This search is not understood: {term}',
    person: 'Enter a name of at most 64 characters.',
    test: 'The test to {name} was not delivered: {failure}',
    gone: 'That message is not kept any more.',
  },
} as const

/** Batches: what was done to many machines at once, how far it is, and what can be done to all of them. */
const machines = (what: string) => ({ one: `{count} ${what}`, other: `{count} ${what}` })

const BATCHES = {
  title: 'Batches',
  all: 'All batches',
  open: 'Batches in progress',
  none: {
    title: 'No batches',
    text: 'An action on several machines is listed here, with how far each of them is.',
    link: 'Select machines',
  },
  power: {
    title: 'Power, machine by machine',
    row: {
      one: '{action}: {left} of {count} machine to go, begun by {actor}',
      other: '{action}: {left} of {count} machines to go, begun by {actor}',
    },
    stop: 'Stop',
    over: 'This has ended already.',
  },
  missing: 'There is no such batch. The newest ones are kept.',
  /** `{what}`: an image, or an action; `{target}`: a label or a search. */
  name: '{what} to {target}',
  /** For an action that writes no image: the action, and a label or a search. */
  nameOfAction: '{what}: {target}',
  machines: { one: '{count} machine', other: '{count} machines' },
  paused: 'Paused',
  pausedText:
    'Machines that wait boot their own disks until the batch goes on. Those that are being flashed go on.',
  states: {
    failed: machines('failed'),
    running: machines('in progress'),
    paused: machines('paused'),
    waiting: machines('not booted yet'),
    disarmed: machines('disarmed'),
    replaced: machines('given another order'),
    refused: machines('skipped'),
    done: machines('done'),
  },
  groups: {
    failed: 'Failed',
    running: 'In progress',
    paused: 'Paused',
    waiting: 'Not booted yet',
    disarmed: 'Disarmed',
    replaced: 'Given another order since',
    refused: 'Skipped',
    done: 'Done',
  },
  more: 'and {count} more',
  /** `{acted}`: what was done to how many machines; `{what}`: the image and what the machines have in common. */
  orderedOf: '{acted}: {what}',
  orderedSkipped: '{ordered} ({count} skipped)',
  imageOfEach: 'the image of each',
  ordered: 'Ordered {time} by {actor}',
  actions: {
    retry: 'Retry failed ({count})',
    disarm: 'Disarm the rest ({count})',
    undo: 'Undo ({count})',
    pause: 'Pause',
    resume: 'Resume',
  },
  questions: {
    retry: {
      title: { one: 'Flash {count} machine again?', other: 'Flash {count} machines again?' },
      button: 'Retry failed',
    },
    resume: {
      title: { one: 'Resume with {count} machine?', other: 'Resume with {count} machines?' },
      button: 'Resume',
    },
    /** `{strong}` to `{end}` is emphasized. */
    erased: {
      one: '{strong}{count} disk will be erased and flashed{end} at the next network boot of this machine.',
      other:
        '{strong}{count} disks will be erased and flashed{end} at the next network boot of these machines.',
    },
  },
  acted: {
    retry: { one: '{count} machine armed again.', other: '{count} machines armed again.' },
    disarm: { one: '{count} machine disarmed.', other: '{count} machines disarmed.' },
    undo: {
      one: '{count} machine is as it was, disarmed.',
      other: '{count} machines are as they were, disarmed.',
    },
    pause: { one: 'Paused: {count} machine waits.', other: 'Paused: {count} machines wait.' },
    resume: { one: 'Resumed: {count} machine goes on.', other: 'Resumed: {count} machines go on.' },
  },
} as const

/** The search of everything, its dialog, and the keys of the pages. */
const FIND = {
  title: 'Search',
  form: {
    label: 'Search everything',
    short: 'Search',
    key: 'Ctrl K',
    placeholder: 'MAC, serial number, name, label, image, setting or action',
    list: 'Found',
    recent: 'Recent',
    none: 'Nothing found.',
    found: '{count} found',
    button: 'Search',
  },
  none: {
    title: 'Nothing found',
    text: 'Nothing here is called so: no machine, disk, label, image, person, setting, page or action.',
  },
  groups: {
    machines: 'Machines',
    actions: 'Actions',
    labels: 'Labels',
    images: 'Images',
    people: 'People',
    settings: 'Settings',
    pages: 'Pages',
  },
  allMachines: { one: 'Show 1 machine in the list', other: 'Show {count} machines in the list' },
  counted: { one: '1 machine', other: '{count} machines' },
  person: 'What {name} did',
  /** Its first word is the one to type. */
  machine: {
    configure: 'Configure {name}',
    flash: 'Flash {name}',
    timeline: 'Timeline of {name}',
    runs: 'Runs of {name}',
    power: 'Power of {name}',
    capture: 'Capture a disk of {name}',
  },
  pages: {
    wall: 'Wall',
    batches: 'Batches',
    people: 'People',
    account: 'Account',
    keys: 'Keyboard shortcuts',
    api: 'API',
  },
  actions: {
    addMachine: 'Add a machine',
    release: 'Install a live system',
    backup: 'Make a backup',
    addPerson: 'Add a person',
    template: 'Make a first-boot template',
    token: 'Make an API token',
    image: 'Add an image',
    cache: 'Connect a cache',
    password: 'Change the password',
  },
  keys: {
    title: 'Keyboard shortcuts',
    everywhere: 'Everywhere',
    lists: 'In lists',
    find: 'Ctrl K',
    enter: 'Enter',
    escape: 'Esc',
    palette: 'search everything, and act',
    search: 'search this page, or everything',
    help: 'show these keys',
    go: 'go to {section}',
    move: 'next and previous row',
    open: 'open the row',
    select: 'select the row',
    assign: 'assign an image and a disk to the machine',
    flash: 'flash the selected machines, or this one',
    clear: 'clear the selection',
    searchTitle: 'Search of the machines',
    searchText:
      'Terms match names, labels, images, serial numbers and addresses. Fields narrow the search: {examples}; prefix with {minus} to exclude.',
    note: 'Keys do nothing while a field has the focus.',
    isOff: 'Single keys are switched off in this browser; {palette} works anyway.',
    off: 'Switch single keys off',
    on: 'Switch single keys on',
    close: 'Close',
  },
} as const

/** Names and labels from a file: the form, the preview, what came of it, and why a file or a line is refused. */
const lines = (one: string, other = one) => ({
  one: `1 line ${one}`,
  other: `{count} lines ${other}`,
})

const MACHINE_FILE = {
  title: 'Names and labels from a file',
  csv: 'Download as CSV',
  introduction:
    'Download the machines as CSV, change their names, labels, racks and slots in a spreadsheet, and bring the file back here. Nothing is changed before you have seen what would be.',
  columns:
    'The first line names the columns: mac, and any of name, labels, rack and slot, in any order. Other columns are not read. An empty cell takes the name, the labels, the rack or the slot away; what has no column stays. Several labels are separated with commas.',
  file: 'File',
  fileHint: 'CSV in UTF-8, separated by commas, semicolons or tabs, of at most 10 MB.',
  text: 'Or paste the table',
  preview: 'Preview',
  again: 'Choose another file',
  ignored: 'These columns are not read: {names}.',
  groups: {
    changed: 'Will change',
    refused: 'Refused',
    twice: 'Twice in the file',
    unknown: 'Unknown MAC address',
    same: 'Same as now',
  },
  counts: {
    changed: lines('will change a machine', 'will change machines'),
    refused: lines('is refused', 'are refused'),
    twice: lines(
      'names a machine that stands twice in the file',
      'name machines that stand twice in the file',
    ),
    unknown: lines('names a machine that is unknown here', 'name machines that are unknown here'),
    same: lines('is as the machine is now', 'are as the machines are now'),
  },
  line: 'Line {line}',
  name: 'Name',
  labels: 'Labels',
  none: 'none',
  more: 'and {count} more',
  confirm: { one: 'Change 1 machine', other: 'Change {count} machines' },
  nothing: 'Nothing would change.',
  done: {
    title: { one: '1 machine was changed', other: '{count} machines were changed' },
    skipped: {
      one: '1 machine was left as it is',
      other: '{count} machines were left as they are',
    },
    missing: 'It no longer exists.',
    follow: 'This batch, with Undo',
    back: 'Back to machines',
  },
  refusals: {
    empty: 'Choose a file, or paste a table.',
    gone: 'This preview is gone, as the server was restarted or others made many since. Choose the file again.',
    nul: 'Line {line} holds bytes that are no text. Save the table as "CSV UTF-8" and try again.',
    'open-quote': 'Line {line}: a cell begins with a quotation mark that nothing closes.',
    'after-quote':
      'Line {line}: something stands between a closing quotation mark and the separator.',
    rows: 'The file has more than {most} lines. Split it.',
    columns: 'Line {line} has more than {most} columns.',
    characters: 'Line {line}: a cell has more than {most} characters.',
    noMac:
      'The first line names no column "mac". It names the columns: mac, and any of name, labels, rack and slot.',
    noColumn: 'The first line names no column that can be changed: name, labels, rack or slot.',
    doubled: 'The first line names the column {column} twice.',
  },
  lineRefusals: {
    cells:
      'This line has {found} cells, but the first line names {columns} columns. Put quotation marks around a text with a separator in it.',
    notMac: '"{text}" is not a MAC address (six pairs of hexadecimal digits).',
    notUtf8: 'The name has characters that are no UTF-8. Save the table as "CSV UTF-8".',
    notNamed:
      'The name was read in another encoding than UTF-8. Download the table again, and save it as "CSV UTF-8".',
    date: 'A spreadsheet has turned the {column} into the date "{text}". Format the column as text, and enter the {column} again.',
    twoRacks:
      'The labels name {inLabels}, the column {column} names {inColumn}: they must be the same.',
  },
} as const

/** Channels: names that point at images. */
const CHANNELS = {
  title: 'Channels',
  hint: 'A channel such as {stable} points to one image. A machine that has the channel is armed with the image that it points to in that moment, and keeps it: moving a channel changes no machine and no order.',
  empty: {
    title: 'No channels',
    text: 'Give an image a name such as stable, and choose that name wherever an image is chosen.',
    readOnly: 'Nobody has made one yet.',
  },
  list: {
    caption: 'Channels',
    name: 'Channel',
    image: 'Image',
    note: 'Note',
    moved: 'Moved',
    machines: 'Machines',
    /** `{time}`, by whom. */
    by: '{time} by {actor}',
    gone: 'no longer in the catalog',
    none: 'none',
    count: { one: '{count} machine', other: '{count} machines' },
    behind: { one: '{count} has another image', other: '{count} have another image' },
  },
  form: {
    add: 'New channel',
    change: 'Change {name}',
    changeShort: 'Change',
    name: 'Name',
    nameHint: 'Letters, digits, dots and dashes, such as stable or lab-12.',
    image: 'Image',
    choose: 'Choose an image',
    note: 'Note',
    aboutNote: 'What people should know, such as why it stays where it is.',
    create: 'Make channel',
    save: 'Save',
  },
  saved: 'The channel {name} points to {image}.',
  removed: 'The channel {name} was removed.',
  errors: {
    refused: 'The channel was not saved.',
    name: 'A name has up to 64 letters, digits, dots, dashes and underscores, and begins with a letter or a digit.',
    taken: 'There is a channel {name} already: change it in the list.',
    image: 'Choose an image.',
    note: 'The note is too long: it may have {count} characters.',
    missing: 'There is no such channel.',
    stale: 'Somebody else changed it meanwhile: look at it again.',
    'too-many': 'There are too many channels: remove one first.',
    armed: {
      one: '{count} machine is armed with it: disarm it first.',
      other: '{count} machines are armed with it: disarm them first.',
    },
  },
  removal: {
    button: 'Remove channel',
    short: 'Remove',
    question: 'Remove the channel {name}?',
    consequence:
      'Machines that have it keep their image, and are armed again only with another image or channel. The image stays.',
  },
} as const

/** Logging in with an OpenID provider. */
const PROVIDER = {
  button: 'Log in with {name}',
  or: 'or with a password',
  away: '{name} cannot be used at the moment: {detail}.',
  none: 'no provider is set with which people log in',
  tooLong: 'the answer of the provider is too long',
  onward: 'Logging in with {name}',
  leaving: 'Logging out at {name}',
  continue: 'Continue',
  ways: 'Where to go',
  again: 'Log in as somebody else',
  back: 'Back to the login page',
  said: 'Your groups',
  nothing: 'none',
  missing: 'Not sent',
  leftOut: 'Too many groups',
  leftOutHint:
    'You are in so many groups that the provider left the claim {claim} out. It has to send fewer of them, or app roles.',
  refused: {
    'no-role': {
      title: 'No access',
      text: '{name} knows you as {as}, but none of your groups has a role on this server.',
      event: 'no role',
    },
    blocked: {
      title: 'Blocked',
      text: '{name} knows you as {as}, and an administrator of this server has blocked you.',
      event: 'blocked',
    },
    'too-many': {
      title: 'No room',
      text: '{name} knows you as {as}, and you may log in, but this server knows too many people already.',
      event: 'too many people',
    },
    'scope-long': {
      title: 'Too many labels',
      text: '{name} knows you as {as}, and your groups give more labels than a session can have.',
      event: 'too many labels',
    },
    ask: 'Ask an administrator of this server, then log in again.',
    askSomebody: 'Ask {contact}, then log in again.',
  },
  errors: {
    unknown:
      'This login was begun in another browser, more than 10 minutes ago, or was finished already. Begin again at {address}.',
    away: '{name} does not answer as it should: {detail}. Try again in a minute.',
    settings:
      '{name} and this server do not fit together: {detail}. An administrator can change it.',
    denied: '{name} did not log you in: {detail}.',
    spent: '{name} does not take this login any more: {detail}. Begin again.',
    doubtful: 'What {name} said could not be verified: {detail}. Begin again.',
  },
} as const

/** The texts of the pages in English, by area: the frame, each page, and what several of them show. */
const ENGLISH = {
  frame: FRAME,
  find: FIND,
  firstBoot: FIRST_BOOT,
  dashboard: DASHBOARD,
  netboot: NETBOOT,
  images: IMAGES,
  backups: BACKUPS,
  batches: BATCHES,
  channels: CHANNELS,
  earlier: EARLIER,
  machines: MACHINES,
  machine: MACHINE,
  machineFile: MACHINE_FILE,
  power: POWER,
  runs: RUNS,
  view: VIEW,
  settings: SETTINGS,
  account: ACCOUNT,
  people: PEOPLE,
  provider: PROVIDER,
  notifications: NOTIFICATIONS,
  events: EVENTS,
} as const

/** What the table of any language satisfies; that its placeholders are known is checked at each use. */
type ServerTranslation = Translated<typeof ENGLISH>

export const PAGES = ENGLISH satisfies ServerTranslation
