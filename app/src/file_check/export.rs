//! How to export a file from a spreadsheet so that it can be read.

use leptos::prelude::*;

pub fn how_to_export() -> impl IntoView {
    view! {
        <h4>"How to export a file"</h4>
        <p>
            "The first column has the numbers and the second one the messages, without a header \
             line. With one message for all, there are only numbers. Format the first column as \
             text before you enter or paste the numbers. Otherwise the program may write a long \
             number as 2.67E+10, and its digits are lost."
        </p>
        <ul>
            <li>
                <strong>"Excel: "</strong>
                "choose File, Save As, and the file type \u{201c}CSV UTF-8 (Comma \
                 delimited)\u{201d}. The types \u{201c}CSV\u{201d}, \u{201c}CSV \
                 (Macintosh)\u{201d} and \u{201c}Unicode Text\u{201d} don't work. If the file then \
                 has semicolons, choose the comma as list separator in the region settings of \
                 Windows, and save again."
            </li>
            <li>
                <strong>"LibreOffice: "</strong>
                "choose File, Save As, and the file type \u{201c}Text CSV\u{201d}. Keep the box \
                 \u{201c}Edit filter settings\u{201d} checked. Then choose the character set \
                 \u{201c}Unicode (UTF-8)\u{201d} and the comma as field delimiter, and leave \
                 \u{201c}Quote all text cells\u{201d} off."
            </li>
            <li>
                <strong>"Google Sheets: "</strong>
                "choose Format, Number, Plain text for the column of numbers. Then choose File, \
                 Download, \u{201c}Comma Separated Values (.csv)\u{201d}."
            </li>
        </ul>
    }
}
