#!/bin/sh
#CE inputs planted variants
#CE outputs report.md chart.svg
#
# Compares the variants that were called with those that are there. Planted ones
# are NDJSON: a row for each variant, with the columns of make-reads and the
# column sample. Variants are VCF with a column for each sample. A variant is
# found if its sample has both its bases at its position. The report is a short
# text in Markdown, and says nothing of qualities. The chart has the quality of
# each variant over its position.

set -eu
export LC_ALL=C

awk -F '\t' '
    function fail(text) {
        print "report-variants: " text | "cat 1>&2"
        close("cat 1>&2")
        failed = 1
        exit 1
    }

    # The value of a column in a row of NDJSON.
    function cell(name,   value) {
        if (!match($0, "\"" name "\":(\"[^\"]*\"|[^\",}]+)"))
            fail("line " FNR " of the planted variants has no column " name)
        value = substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3)
        gsub(/"/, "", value)
        return value
    }

    # Numbers the samples in order of appearance.
    function add_sample(name) {
        if (!(name in number_of)) {
            number_of[name] = ++samples
            sample[samples] = name
        }
    }

    # How both copies of a sample read at a position: "A>A/C" for A and C in place of A.
    function reading(reference, first, second) {
        return reference ">" (first < second ? first "/" second : second "/" first)
    }

    # One place in one sample, as a row of a table.
    function row(name, chromosome, position, bases) {
        return "| " name " | " chromosome " | " position " | " bases " |"
    }

    function table(title, rows, count,   i) {
        print "\n## " title "\n" >report
        print count ? "| sample | chromosome | position | bases |\n| --- | --- | ---: | --- |" : "None." >report
        for (i = 1; i <= count; i++)
            print rows[i] >report
    }

    function text(class, x, y, words) {
        printf "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", class, x, y, words >chart
    }

    function straight(class, x1, y1, x2, y2) {
        printf "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, x1, y1, x2, y2 >chart
    }

    function dot(class, x, y, words) {
        printf "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\">%s</circle>\n", class, x, y, words >chart
    }

    # The class of a sample: there are five colours.
    function colour(name) {
        return "s" (number_of[name] - 1) % 5
    }

    # The largest of 1, 2 and 5 times a power of ten that is at most the wish, or 1.
    function round_step(wish,   power) {
        for (power = 1; power * 10 <= wish; power *= 10)
            ;
        return power * (power * 5 <= wish ? 5 : power * 2 <= wish ? 2 : 1)
    }

    function write_report(   i) {
        print "# Variants of " samples (samples == 1 ? " sample" : " samples") >report
        print "\n" planted_all " variants are there, and " called_all " were called, " found_all " of them right.\n" >report
        print "| sample | planted | called | right | missed | wrong |" >report
        print "| --- | ---: | ---: | ---: | ---: | ---: |" >report
        for (i = 1; i <= samples; i++) {
            name = sample[i]
            printf "| %s | %d | %d | %d ", name, planted[name], called[name], found[name] >report
            printf "| %d | %d |\n", planted[name] - found[name], called[name] - found[name] >report
        }
        table("Missed", missed, misses)
        table("Wrong", wrong, wrongs)
    }

    function draw(   i, left, right, top, bottom, high, step, x) {
        left = 72
        right = 936
        top = 110
        bottom = 446
        print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 520\" width=\"960\" height=\"520\" role=\"img\">" >chart
        print "<title>Quality of the variants</title>" >chart
        print "<style>" >chart
        print "text { font-family: Helvetica, Arial, \"Liberation Sans\", \"DejaVu Sans\", sans-serif; font-size: 14px; fill: #4d545c }" >chart
        print ".title { font-size: 22px; font-weight: bold; fill: #1d2329 }" >chart
        print ".x { text-anchor: middle }" >chart
        print ".y { text-anchor: end }" >chart
        print ".grid { stroke: #e3e6e9 }" >chart
        print ".axis { stroke: #4d545c }" >chart
        print ".wrong { stroke: #000000; stroke-width: 2 }" >chart
        print ".s0 { fill: #0072b2 } .s1 { fill: #d55e00 } .s2 { fill: #009e73 } .s3 { fill: #cc79a7 } .s4 { fill: #e69f00 }" >chart
        print "</style>" >chart
        print "<rect width=\"960\" height=\"520\" fill=\"#ffffff\"/>" >chart
        text("title", 24, 40, "Quality of the variants")
        for (i = 1; i <= samples; i++) {
            dot(colour(sample[i]), 30 + (i - 1) * 120, 70, "")
            text("legend", 42 + (i - 1) * 120, 75, sample[i])
        }

        step = round_step(highest / 4)
        high = (int(highest / step) + 1) * step
        for (i = 0; i <= high; i += step) {
            x = bottom - i / high * (bottom - top)
            straight(i ? "grid" : "axis", left, x, right, x)
            text("y", left - 10, x + 5, i)
        }
        step = round_step(length_all / 8)
        for (i = 0; i <= length_all; i += step) {
            x = left + i / length_all * (right - left)
            straight("axis", x, bottom, x, bottom + 6)
            text("x", x, bottom + 22, i)
        }
        text("x", (left + right) / 2, bottom + 44, "position in the genome; with a rim: not there")
        for (i = 1; i <= called_all; i++)
            dot(class[i], left + place[i] / length_all * (right - left), bottom - quality[i] / high * (bottom - top), "<title>" hint[i] "</title>")
        print "</svg>" >chart
    }

    BEGIN {
        report = ENVIRON["out_report_md"]
        chart = ENVIRON["out_chart_svg"]
    }

    part == "planted" {
        name = cell("sample")
        add_sample(name)
        planted[name]++
        planted_all++
        order[planted_all] = name SUBSEP cell("chromosome") SUBSEP cell("position")
        reference = cell("reference")
        alternate = cell("alternate")
        there[order[planted_all]] = reading(reference, cell("genotype") == "1/1" ? alternate : reference, alternate)
    }

    part == "variants" && match($0, /^##contig=<ID=[^,]*,length=[0-9]+/) {
        split(substr($0, 14, RLENGTH - 13), field, ",length=")
        offset[field[1]] = length_all
        length_all += field[2]
    }

    part == "variants" && /^#CHROM/ {
        for (i = 10; i <= NF; i++) {
            add_sample($i)
            column[i] = $i
        }
    }

    part == "variants" && !/^#/ {
        if (NF < 10 || !($1 in offset))
            fail("line " FNR " of the variants is not of a genome and samples that its header names")
        split($5, base, ",")
        base[0] = $4
        for (i = 10; i <= NF; i++) {
            split($i, field, ":")
            if (split(field[1], allele, /[\/|]/) != 2 || field[1] !~ /[1-9]/)
                continue
            bases = reading($4, base[allele[1]], base[allele[2]])
            key = column[i] SUBSEP $1 SUBSEP $2
            called[column[i]]++
            place[++called_all] = offset[$1] + $2
            quality[called_all] = $6 + 0
            highest = $6 + 0 > highest ? $6 + 0 : highest
            class[called_all] = colour(column[i])
            hint[called_all] = column[i] " " $1 ":" $2 " " $4 " to " base[allele[1]] "/" base[allele[2]] ", quality " $6
            if (there[key] == bases) {
                found[column[i]]++
                found_all++
                right[key] = 1
            } else {
                wrong[++wrongs] = row(column[i], $1, $2, bases)
                class[called_all] = class[called_all] " wrong"
            }
        }
    }

    END {
        if (failed)
            exit 1
        if (!length_all)
            fail("the header of the variants names no genome")
        for (i = 1; i <= planted_all; i++)
            if (!(order[i] in right)) {
                split(order[i], field, SUBSEP)
                missed[++misses] = row(field[1], field[2], field[3], there[order[i]])
            }
        planted_all += 0
        called_all += 0
        found_all += 0
        write_report()
        draw()
    }
' part=planted "$in_planted" part=variants "$in_variants"
