/** Names and labels from a file: the form, the preview, what came of it, and why a file or a line is refused. */

const lines = (one: string, other = one) => ({
  one: `1 line ${one}`,
  other: `{count} lines ${other}`,
})

export const MACHINE_FILE = {
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
